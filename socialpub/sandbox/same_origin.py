"""Who may control the sandbox: programs on this machine and its own pages, never a page of another site in a browser.

A browser sends requests on behalf of any page, and names the page's site in `Origin`. A site can also give its own
name the address of this machine. Then `Host` contains that name.
"""

import ipaddress

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

READING = ("GET", "HEAD")


class OwnPagesOnly:
    """Refuses with 403 a request that a foreign page may have sent. `reading` refuses it for reads as well.

    A name without a dot belongs to this machine or its network, such as `localhost` or a container's name: no site can
    give it an address. Any other name is foreign, unless the sandbox listens on it.
    """

    def __init__(self, app: ASGIApp, *, reading: bool) -> None:
        self._app = app
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wrong = ""
        if self._reading or scope["method"] not in READING:
            wrong = _foreign(Headers(scope=scope), scope["app"].state.world.listens_on)
        if wrong:
            await PlainTextResponse(f"{wrong}\n", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


OWN_FORM = Middleware(OwnPagesOnly, reading=False)
"""For pages that every site may read, with a form that changes something."""
OWN_CONTROL = Middleware(OwnPagesOnly, reading=True)


def _foreign(headers: Headers, listens_on: str) -> str:
    """Return what is foreign about the request, or an empty text."""
    hosts = headers.getlist("host")
    for host in hosts:
        name = _name_in(host)
        if name != listens_on.lower() and not _is_of_this_machine(name):
            return (
                f"Host: {host} is not a name of the sandbox. Use the address that it printed at its start, such as "
                "http://127.0.0.1:8100/."
            )
    own = {f"{scheme}://{host.lower()}" for scheme in ("http", "https") for host in hosts}
    for origin in headers.getlist("origin"):
        if origin.lower() not in own:
            return (
                f"Origin: {origin} is another site, and only the sandbox's own pages may do this. A program leaves "
                "Origin out."
            )
    return ""


def _name_in(host: str) -> str:
    """Return the name in lower case, without the port and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_of_this_machine(name: str) -> bool:
    if "." not in name.rstrip(".") and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True
