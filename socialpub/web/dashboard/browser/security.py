"""What a browser proves and stores: cookies, the tokens of forms, a known browser, and a signed notice."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import orjson

from socialpub.core.errors import Forbidden
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Header
from socialpub.web.http.request import Request

# MERGED from web/dashboard/cookies.py: Cookies of the dashboard: who is signed in, which browser a form was given

CookieName = Literal["session", "visitor", "notice", "device"]

ZONE_COOKIE = "socialpub_zone"
"""Set by the page's own script: the name of the browser's time zone."""
MAX_COOKIE_BYTES = 8192


def is_https(request: Request) -> bool:
    """Whether the browser reached us over https. A proxy's word is taken: it only decides about the browser that sent
    it along."""
    forwarded = request.headers.get(b"x-forwarded-proto")
    if forwarded is not None:
        return forwarded.rpartition(b",")[2].strip().lower() == b"https"
    base = urlsplit(request.state.rt.settings.base_url)
    host = request.headers.get(b"host", b"").decode("latin-1").lower()
    # A proxy that tells nothing of the scheme tells the caller's address all the same.
    return base.scheme == "https" and (host == base.netloc.lower() or b"x-forwarded-for" in request.headers)


def read_cookies(request: Request) -> dict[str, str]:
    """What the browser brought, by name."""
    header = request.headers.get(b"cookie", b"")
    if not header or len(header) > MAX_COOKIE_BYTES:
        return {}
    return dict(_cookie_pairs(header.decode("latin-1")))


def _cookie_pairs(header: str) -> Iterator[tuple[str, str]]:
    # Cookies of other programs on this host may have any form: one that cannot be read must not hide ours.
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        yield name, value


def cookie_name(request: Request, name: CookieName) -> str:
    """The cookie's whole name for this connection and installation."""
    prefix = "__Host-" if is_https(request) else ""
    return f"{prefix}socialpub_{name}_{request.state.rt.instance_id[:8]}"


def put_cookie(request: Request, name: CookieName, value: str, lifetime_seconds: int | None = None) -> Header:
    """The header that gives the browser a cookie; without a lifetime it ends with the browser. The value is written
    with letters, digits and `-_.`."""
    assert all(letter.isalnum() or letter in "-_." for letter in value), "a cookie that would need quotes"
    cookie = f"{cookie_name(request, name)}={value}; Path=/; HttpOnly; SameSite=Lax"
    if is_https(request):
        cookie += "; Secure"
    if lifetime_seconds is not None:
        cookie += f"; Max-Age={lifetime_seconds}"
    return (b"set-cookie", cookie.encode())


def drop_cookie(request: Request, name: CookieName) -> Header:
    """The header that takes a cookie away."""
    return put_cookie(request, name, "", 0)


# MERGED from web/dashboard/forgery.py: Against forged requests: only a form that this browser was given, sent from

CSRF_FIELD = "csrf"
CSRF_HEADER = b"x-csrf-token"
_SALT_LETTERS = 16

STALE = (
    "This form was not given to this browser, or it is older than your last sign-in. Nothing was done: go back, load "
    "the page again and send it once more."
)
FOREIGN = (
    "This form came from another site, so nothing was done. If you reach the dashboard through a proxy, let it pass on "
    "the Host header, or set base_url to the address that your browser shows."
)


def form_token(secret: str) -> str:
    """For a form that is shown to the browser with this secret in its cookie."""
    salt = secrets.token_hex(_SALT_LETTERS // 2)
    return salt + _sign_token(secret, salt)


def check_token(request: Request, secret: str, given: str) -> None:
    """Raises Forbidden unless the request comes from our own pages with a token for this browser."""
    check_origin(request)
    salt, signature = given[:_SALT_LETTERS], given[_SALT_LETTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign_token(secret, salt).encode()):
        raise Forbidden(STALE)


def check_origin(request: Request) -> None:
    """Raises Forbidden unless the request comes from our own pages."""
    if not _is_own_page(request):
        raise Forbidden(FOREIGN)


def _sign_token(secret: str, salt: str) -> str:
    return hmac.new(secret.encode(), f"form {salt}".encode(), hashlib.sha256).hexdigest()


def _is_own_page(request: Request) -> bool:
    origin = request.headers.get(b"origin")
    if origin is None:
        # Not every client sends it; browsers that leave it out say this instead, or know neither.
        return request.headers.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none")
    try:
        parts = urlsplit(origin.decode("latin-1").lower())
    except ValueError:
        return False
    base = urlsplit(request.state.rt.settings.base_url.lower())
    if (parts.scheme, parts.netloc) == (base.scheme, base.netloc):
        return True
    host = request.headers.get(b"host", b"").decode("latin-1").lower()
    return parts.scheme in ("http", "https") and parts.netloc != "" and parts.netloc == host


# MERGED from web/dashboard/known_browser.py: A browser that was signed in before keeps a cookie, by which its wron

KNOWN_BROWSER_SECONDS = 400 * 86_400
"""Browsers keep no cookie for longer. Each sign-in and each use of a session begins it again."""


def find_known_browser(request: Request) -> str | None:
    """Return the id of this browser. None: it brings no cookie of ours that is still valid."""
    rt, value = request.state.rt, read_cookies(request).get(cookie_name(request, "device"), "")
    browser_id, _, signature = value.partition(".")
    return browser_id if browser_id and rt.secrets.verify(signature, *_signed_browser(rt, browser_id)) else None


def known_browser_cookie(request: Request) -> Header:
    """Return the header that lets a signed-in browser be known from now on. A known browser keeps its id."""
    rt = request.state.rt
    browser_id = find_known_browser(request) or secrets.token_urlsafe(18)
    value = f"{browser_id}.{rt.secrets.sign(*_signed_browser(rt, browser_id))}"
    return put_cookie(request, "device", value, KNOWN_BROWSER_SECONDS)


def _signed_browser(rt: Runtime, browser_id: str) -> tuple[str, ...]:
    return "known browser", rt.instance_id, browser_id


# MERGED from web/dashboard/notices.py: What an action came to, told on the next page: one sentence that travels in

NoticeKind = Literal["status", "alert"]

MAX_NOTICE_LETTERS = 1500
"""Letters; a cookie holds some 4,000 bytes."""


@dataclass(frozen=True, slots=True)
class Notice:
    """`kind` is the role of the element that says it."""

    kind: NoticeKind
    text: str


def pack_notice(notice: Notice, secret: str) -> str:
    """The value of the cookie."""
    text = notice.text if len(notice.text) <= MAX_NOTICE_LETTERS else f"{notice.text[: MAX_NOTICE_LETTERS - 1]}…"
    content = base64.urlsafe_b64encode(orjson.dumps([notice.kind, text])).rstrip(b"=").decode()
    return f"{content}.{_sign_notice(content, secret)}"


def unpack_notice(value: str, secret: str) -> Notice | None:
    """What `pack` packed for this browser, or None."""
    content, _, signature = value.partition(".")
    if not secret or not hmac.compare_digest(signature.encode(), _sign_notice(content, secret).encode()):
        return None
    kind, text = orjson.loads(base64.urlsafe_b64decode(content + "=="))
    return Notice(kind, text)


def _sign_notice(content: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"notice {content}".encode(), hashlib.sha256).hexdigest()
