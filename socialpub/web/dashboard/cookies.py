"""Cookies of the dashboard: who is signed in, which browser a form was given to or was signed in before, its time zone,
and a notice.

Over https they are `Secure` and bound to this very host; over plain http, as in a LAN, a browser would not send such
ones back. The port does not tell cookies apart, so that names carry which installation they belong to.
"""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from socialpub.web.answer import Header
from socialpub.web.request import Request

Name = Literal["session", "visitor", "notice", "device"]

ZONE = "socialpub_zone"
"""Set by the page's own script: the name of the browser's time zone."""
MOST_BYTES = 8192


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


def read(request: Request) -> dict[str, str]:
    """What the browser brought, by name."""
    header = request.headers.get(b"cookie", b"")
    if not header or len(header) > MOST_BYTES:
        return {}
    return dict(_pairs(header.decode("latin-1")))


def _pairs(header: str) -> Iterator[tuple[str, str]]:
    # Cookies of other programs on this host may have any form: one that cannot be read must not hide ours.
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        yield name, value


def name_of(request: Request, name: Name) -> str:
    """The cookie's whole name for this connection and installation."""
    prefix = "__Host-" if is_https(request) else ""
    return f"{prefix}socialpub_{name}_{request.state.rt.instance_id[:8]}"


def put(request: Request, name: Name, value: str, lifetime_seconds: int | None = None) -> Header:
    """The header that gives the browser a cookie; without a lifetime it ends with the browser. The value is written
    with letters, digits and `-_.`."""
    assert all(letter.isalnum() or letter in "-_." for letter in value), "a cookie that would need quotes"
    cookie = f"{name_of(request, name)}={value}; Path=/; HttpOnly; SameSite=Lax"
    if is_https(request):
        cookie += "; Secure"
    if lifetime_seconds is not None:
        cookie += f"; Max-Age={lifetime_seconds}"
    return (b"set-cookie", cookie.encode())


def drop(request: Request, name: Name) -> Header:
    """The header that takes a cookie away."""
    return put(request, name, "", 0)
