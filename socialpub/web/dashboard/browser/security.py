"""Cookies, form tokens, known browsers and signed notices.

Over https, cookies are `Secure` and bound to this host. Over plain http, a browser would not return such cookies.
Cookie names contain the id of the installation, because cookies do not depend on the port.

Three checks stop forged requests: SameSite cookies, the Origin header, and a form token that matches the cookie. The
token differs on each page, so that compressed pages do not reveal it.

A browser that was signed in keeps a signed cookie. Its wrong passwords have their own count, so a stranger with the
same IP address cannot lock the owner out. The cookie is not a session, and it stays valid after sign-out and after a
change of the password. No list of browsers is stored.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request

from socialpub.core.errors import Forbidden
from socialpub.runtime import Runtime

Header = tuple[str, str]
CookieName = Literal["session", "visitor", "notice", "device"]

ZONE_COOKIE = "socialpub_zone"
MAX_COOKIE_BYTES = 8192


def is_https(request: Request) -> bool:
    """Return whether the browser uses https. The header of a proxy is trusted: it affects only this browser."""
    forwarded = request.headers.get("x-forwarded-proto")
    if forwarded is not None:
        return forwarded.rpartition(",")[2].strip().lower() == "https"
    base = urlsplit(request.app.state.rt.settings.base_url)
    host = request.headers.get("host", "").lower()
    # A proxy that does not send the scheme sends the client's IP address.
    return base.scheme == "https" and (host == base.netloc.lower() or "x-forwarded-for" in request.headers)


def read_cookies(request: Request) -> dict[str, str]:
    header = request.headers.get("cookie", "")
    if len(header) > MAX_COOKIE_BYTES:
        return {}
    # Cookies of other programs on this host can have any form and must not hide ours.
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}


def cookie_name(request: Request, name: CookieName) -> str:
    prefix = "__Host-" if is_https(request) else ""
    return f"{prefix}socialpub_{name}_{request.app.state.rt.instance_id[:8]}"


def put_cookie(request: Request, name: CookieName, value: str, lifetime_seconds: int | None = None) -> Header:
    """Return the header that sets a cookie. Without a lifetime, the cookie ends with the browser session."""
    assert all(letter.isalnum() or letter in "-_." for letter in value), "a cookie that would need quotes"
    cookie = f"{cookie_name(request, name)}={value}; Path=/; HttpOnly; SameSite=Lax"
    if is_https(request):
        cookie += "; Secure"
    if lifetime_seconds is not None:
        cookie += f"; Max-Age={lifetime_seconds}"
    return ("set-cookie", cookie)


def drop_cookie(request: Request, name: CookieName) -> Header:
    return put_cookie(request, name, "", 0)


CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
_SALT_LETTERS = 16

STALE = "This form has expired. Nothing was changed. Go back, reload the page and submit it again."
FOREIGN = (
    "This form came from another site. Nothing was changed. If you use a proxy, make the proxy forward the Host "
    "header. Or set base_url to the URL that your browser shows."
)


def form_token(secret: str) -> str:
    salt = secrets.token_hex(_SALT_LETTERS // 2)
    return salt + _sign("form", salt, secret)


def check_token(request: Request, secret: str, given: str) -> None:
    """Raise Forbidden unless the form has a valid token and comes from our own pages."""
    check_origin(request)
    salt, signature = given[:_SALT_LETTERS], given[_SALT_LETTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign("form", salt, secret).encode()):
        raise Forbidden(STALE)


def check_origin(request: Request) -> None:
    if not _comes_from_here(request):
        raise Forbidden(FOREIGN)


def _comes_from_here(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        # Some browsers send only Sec-Fetch-Site, and some send neither header.
        return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return False
    base = urlsplit(request.app.state.rt.settings.base_url.lower())
    if (parts.scheme, parts.netloc) == (base.scheme, base.netloc):
        return True
    host = request.headers.get("host", "").lower()
    return parts.scheme in ("http", "https") and parts.netloc != "" and parts.netloc == host


KNOWN_BROWSER_SECONDS = 400 * 86_400
"""The maximum that browsers allow. Each sign-in and each use of a session renews the cookie."""


def find_known_browser(request: Request) -> str | None:
    """Return the id of this browser. None: it has no valid cookie."""
    rt, value = request.app.state.rt, read_cookies(request).get(cookie_name(request, "device"), "")
    browser_id, _, signature = value.partition(".")
    return browser_id if browser_id and rt.secrets.verify(signature, *_signed_browser(rt, browser_id)) else None


def known_browser_cookie(request: Request) -> Header:
    """Return the header that marks this browser as known. A known browser keeps its id."""
    rt = request.app.state.rt
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

    Its signature prevents other sites from showing a notice on a page of the owner."""

    kind: Literal["status", "alert"]
    text: str


def pack_notice(notice: Notice, secret: str) -> str:
    text = notice.text if len(notice.text) <= MAX_NOTICE_LETTERS else f"{notice.text[: MAX_NOTICE_LETTERS - 1]}…"
    content = base64.urlsafe_b64encode(orjson.dumps([notice.kind, text])).rstrip(b"=").decode()
    return f"{content}.{_sign('notice', content, secret)}"


def unpack_notice(value: str, secret: str) -> Notice | None:
    """Return the notice if its signature is valid for this browser."""
    content, _, signature = value.partition(".")
    if not secret or not hmac.compare_digest(signature.encode(), _sign("notice", content, secret).encode()):
        return None
    kind, text = orjson.loads(base64.urlsafe_b64decode(content + "=="))
    return Notice(kind, text)


def _sign(purpose: str, text: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
