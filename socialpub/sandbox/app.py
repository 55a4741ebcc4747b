"""All routes of the sandbox, and the server that listens on a port."""

import socket
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from socialpub.sandbox import control, pages
from socialpub.sandbox.bluesky.pages import BlueskyPages
from socialpub.sandbox.endpoint import SandboxEndpoint
from socialpub.sandbox.feeds import NetworkPages
from socialpub.sandbox.pinterest.pages import PinterestPages
from socialpub.sandbox.tiktok.pages import TikTokPages
from socialpub.sandbox.world import World
from socialpub.sandbox.x.pages import XPages

PAGES: dict[str, type[NetworkPages[Any]]] = {
    "x": XPages,
    "tiktok": TikTokPages,
    "pinterest": PinterestPages,
    "bluesky": BlueskyPages,
}


def create_app(world: World) -> Starlette:
    """Create one ASGI application for all networks: X below `/x`, TikTok below `/tiktok`, Pinterest below
    `/pinterest/v5`, Bluesky below `/bluesky`."""
    app = Starlette(
        routes=[
            *(Mount(f"/{name}", app=_router(_network_routes(world, name))) for name in PAGES),
            Mount("/_control", app=_router([*control.routes()])),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    app.state.world = world
    return app


def _network_routes(world: World, network: str) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    for call in world.networks[network].declared_calls():
        methods = [call.method] if call.method else ["GET", "POST"]
        routes.append(Route(call.path, SandboxEndpoint(world, network, call), methods=methods))
    return [*routes, *PAGES[network](network).routes()]


def _router(routes: list[BaseRoute]) -> Router:
    return Router(routes=routes, redirect_slashes=False, default=_not_found)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    raise HTTPException(404)


async def _refuse(request: Request, error: Exception) -> Response:
    """Respond with 404 or 405 in the network's format."""
    assert isinstance(error, HTTPException)
    network = request.app.state.world.networks.get(request.scope["path"].split("/")[1])
    if network is None:
        return PlainTextResponse(error.detail, error.status_code, headers=error.headers)
    reply = network.http_error(error.status_code)
    return Response(reply.body, reply.status, dict(reply.headers), reply.content_type or None)


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


def run(world: World, sock: socket.socket) -> None:
    """Serve until a signal."""
    SandboxServer(world).run(sockets=[sock])
