"""What a browser stores and proves: cookies, the tokens of forms, a known browser, and a signed notice.

Over https, cookies are `Secure` and bound to this host. Over plain http, as in a LAN, a browser would not send such
cookies back. The port does not distinguish cookies, so their names carry the installation.

Three locks stop forged requests: the cookies' SameSite, the Origin that every browser sends with a form, and a token in
the form that fits the browser's cookie. The token differs on every page, so that compressed answers do not reveal it.

A browser that was signed in before keeps a cookie, by which its wrong passwords are counted apart. A stranger who
shares the owner's address, as behind a proxy that is not trusted, then cannot lock the owner out. The cookie is no
session. It stays valid after sign-out and after a change of the password, because a stranger's guesses may be why the
owner changes it. Its signature binds the installation. No list of browsers is kept: none can be filled or restored.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import orjson

from socialpub.core.errors import Forbidden
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Header
from socialpub.web.http.request import Request

CookieName = Literal["session", "visitor", "notice", "device"]

ZONE_COOKIE = "socialpub_zone"
"""The name of the browser's time zone, set by the page's script."""
MAX_COOKIE_BYTES = 8192


def is_https(request: Request) -> bool:
    """Return whether the browser reached us over https. We trust a proxy here: its word concerns only the browser that
    sent the request."""
    forwarded = request.headers.get(b"x-forwarded-proto")
    if forwarded is not None:
        return forwarded.rpartition(b",")[2].strip().lower() == b"https"
    base = urlsplit(request.state.rt.settings.base_url)
    host = request.headers.get(b"host", b"").decode("latin-1").lower()
    # A proxy that does not send the scheme still sends the caller's address.
    return base.scheme == "https" and (host == base.netloc.lower() or b"x-forwarded-for" in request.headers)


def read_cookies(request: Request) -> dict[str, str]:
    header = request.headers.get(b"cookie", b"")
    if len(header) > MAX_COOKIE_BYTES:
        return {}
    # Cookies of other programs on this host may have any form: an unreadable one must not hide ours.
    pairs = (part.strip().partition("=") for part in header.decode("latin-1").split(";"))
    return {name: value for name, _, value in pairs}


def cookie_name(request: Request, name: CookieName) -> str:
    """Return the cookie's whole name for this connection and installation."""
    prefix = "__Host-" if is_https(request) else ""
    return f"{prefix}socialpub_{name}_{request.state.rt.instance_id[:8]}"


def put_cookie(request: Request, name: CookieName, value: str, lifetime_seconds: int | None = None) -> Header:
    """Return the header that sets a cookie of letters, digits and `-_.`. By default it ends with the browser."""
    assert all(letter.isalnum() or letter in "-_." for letter in value), "a cookie that would need quotes"
    cookie = f"{cookie_name(request, name)}={value}; Path=/; HttpOnly; SameSite=Lax"
    if is_https(request):
        cookie += "; Secure"
    if lifetime_seconds is not None:
        cookie += f"; Max-Age={lifetime_seconds}"
    return (b"set-cookie", cookie.encode())


def drop_cookie(request: Request, name: CookieName) -> Header:
    return put_cookie(request, name, "", 0)


CSRF_FIELD = "csrf"
CSRF_HEADER = b"x-csrf-token"
_SALT_LETTERS = 16

STALE = "This form has expired. Nothing was changed. Go back, reload the page and submit it again."
FOREIGN = (
    "This form came from another site. Nothing was changed. If you use a proxy, make it forward the Host header, or "
    "set base_url to the address that your browser shows."
)


def form_token(secret: str) -> str:
    """Return a token for a form that is shown to the browser with this secret in its cookie."""
    salt = secrets.token_hex(_SALT_LETTERS // 2)
    return salt + _sign("form", salt, secret)


def check_token(request: Request, secret: str, given: str) -> None:
    """Raise Forbidden unless the request comes from our own pages with a token for this browser."""
    check_origin(request)
    salt, signature = given[:_SALT_LETTERS], given[_SALT_LETTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign("form", salt, secret).encode()):
        raise Forbidden(STALE)


def check_origin(request: Request) -> None:
    """Raise Forbidden unless the request comes from our own pages."""
    if not _comes_from_here(request):
        raise Forbidden(FOREIGN)


def _comes_from_here(request: Request) -> bool:
    origin = request.headers.get(b"origin")
    if origin is None:
        # Not every client sends it. A browser that leaves it out sends this header instead, or knows neither.
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


KNOWN_BROWSER_SECONDS = 400 * 86_400
"""The longest lifetime that browsers allow. Each sign-in and each use of a session begins it again."""


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


MAX_NOTICE_LETTERS = 1500
"""A cookie holds about 4,000 bytes."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The result of an action, shown once on the next page. `kind` is the role of its element.

    It is signed for the browser's session, so that no other site can put words on the owner's page."""

    kind: Literal["status", "alert"]
    text: str


def pack_notice(notice: Notice, secret: str) -> str:
    text = notice.text if len(notice.text) <= MAX_NOTICE_LETTERS else f"{notice.text[: MAX_NOTICE_LETTERS - 1]}…"
    content = base64.urlsafe_b64encode(orjson.dumps([notice.kind, text])).rstrip(b"=").decode()
    return f"{content}.{_sign('notice', content, secret)}"


def unpack_notice(value: str, secret: str) -> Notice | None:
    """Return the notice that was packed for this browser, or None."""
    content, _, signature = value.partition(".")
    if not secret or not hmac.compare_digest(signature.encode(), _sign("notice", content, secret).encode()):
        return None
    kind, text = orjson.loads(base64.urlsafe_b64decode(content + "=="))
    return Notice(kind, text)


def _sign(purpose: str, text: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
