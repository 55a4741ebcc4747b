"""`POST /mcp`: the entry point of agents (contract 10.4.1)."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Forbidden
from socialpub.runtime import Runtime
from socialpub.web.http.endpoint import endpoint

_PORTS = {"http": 80, "https": 443}


@endpoint(scope="read")
async def post(rt: Runtime, caller: Caller, request: Request) -> Response:
    """Answer one message. Problem documents are refusals of HTTP; the protocol reports its own failures in JSON-RPC."""
    _check_origin(rt, request)
    # An appliance without agents does not need the memory of the tools and their schemas.
    from socialpub.web.mcp import protocol

    return await protocol.answer(rt, caller, request)


def _check_origin(rt: Runtime, request: Request) -> None:
    """Refuse pages of other sites: a browser in the owner's network reaches appliances that the site cannot reach.

    The host of the request does not count, because DNS rebinding makes it agree with the origin.
    """
    origin = request.headers.get("origin")
    if origin is not None and _place(origin) != _place(rt.settings.base_url):
        raise Forbidden("This Origin is not allowed. Call MCP from a program, or from a page of base_url.")


def _place(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url.lower())
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
