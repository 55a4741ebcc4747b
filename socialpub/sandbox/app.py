"""All routes of the sandbox, and the server that listens on a port."""

import socket
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from socialpub.sandbox import control, pages
from socialpub.sandbox.bluesky import repo, sessions
from socialpub.sandbox.bluesky.pages import BlueskyPages
from socialpub.sandbox.endpoint import SandboxCall, SandboxEndpoint
from socialpub.sandbox.feeds import NetworkPages
from socialpub.sandbox.pinterest import api as pinterest_api
from socialpub.sandbox.pinterest.oauth import PinterestAuthorization
from socialpub.sandbox.pinterest.pages import PinterestPages
from socialpub.sandbox.tiktok import api as tiktok_api
from socialpub.sandbox.tiktok.oauth import TikTokAuthorization
from socialpub.sandbox.tiktok.pages import TikTokPages
from socialpub.sandbox.world import World, current_world
from socialpub.sandbox.x import api as x_api
from socialpub.sandbox.x.oauth import XAuthorization
from socialpub.sandbox.x.pages import XPages

CALLS: dict[str, tuple[SandboxCall, ...]] = {
    "x": (*XAuthorization().calls(), *x_api.CALLS),
    "tiktok": (*TikTokAuthorization().calls(), *tiktok_api.CALLS),
    "pinterest": (*PinterestAuthorization().calls(), *pinterest_api.CALLS),
    "bluesky": (*repo.CALLS, *sessions.CALLS),
}
PAGES: dict[str, NetworkPages[Any]] = {
    "x": XPages(),
    "tiktok": TikTokPages(),
    "pinterest": PinterestPages(),
    "bluesky": BlueskyPages(),
}


def create_app(world: World) -> Starlette:
    """Create one ASGI application for all networks: X below `/x`, TikTok below `/tiktok`, Pinterest below
    `/pinterest/v5`, Bluesky below `/bluesky`."""
    app = Starlette(
        routes=[
            *(Mount(f"/{name}", app=_router(_network_routes(world, name))) for name in CALLS),
            Mount("/_control", app=_router([*control.routes()])),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: _refuse},
        middleware=[Middleware(OwnPagesOnly)],
    )
    app.router.redirect_slashes = False
    app.state.world = world
    return app


def _network_routes(world: World, network: str) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    for call in world.calls.get(network, CALLS[network]):
        methods = [call.method] if call.method else ["GET", "POST"]
        routes.append(Route(call.path, SandboxEndpoint(world, network, call), methods=methods))
    return [*routes, *PAGES[network].routes()]


def _router(routes: list[BaseRoute]) -> Router:
    return Router(routes=routes, redirect_slashes=False, default=_not_found)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    raise HTTPException(404)


async def _refuse(request: Request, error: Exception) -> Response:
    """Respond with 404 or 405 in the network's format."""
    assert isinstance(error, HTTPException)
    network = current_world(request).networks.get(request.scope["path"].split("/")[1])
    if network is None:
        return PlainTextResponse(error.detail, error.status_code, headers=error.headers)
    reply = network.http_error(error.status_code)
    return Response(reply.body, reply.status, dict(reply.headers), reply.content_type or None)


class OwnPagesOnly:
    """Refuses with 403 a change that a browser sends on behalf of another site. The browser names it in `Origin`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, host = headers.get("origin", ""), headers.get("host", "").lower()
        if origin.lower() in ("", f"http://{host}", f"https://{host}"):
            await self._app(scope, receive, send)
            return
        words = f"Origin: {origin} is another site, and only the sandbox's own pages may do this.\n"
        await PlainTextResponse(words, 403)(scope, receive, send)


# --- on a port -------------------------------------------------------------------------------------------------------


class SandboxServer(uvicorn.Server):
    def __init__(self, world: World) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(world),
                log_level="warning",
                access_log=False,
                lifespan="off",
                # Then the server cancels the calls whose fault never responds.
                timeout_graceful_shutdown=1,
                date_header=False,
            )
        )
        world.serve()


def run(world: World, sock: socket.socket) -> None:
    """Serve until a signal."""
    SandboxServer(world).run(sockets=[sock])
