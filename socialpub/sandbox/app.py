"""All routes of the sandbox on one screen, and the server that listens on a port."""

import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from socialpub.sandbox import control, pages
from socialpub.sandbox.bluesky import repo, sessions
from socialpub.sandbox.bluesky.pages import BlueskyPages
from socialpub.sandbox.endpoint import OWN_CONTROL, OWN_FORM, OpenSink, Prepare, SandboxEndpoint
from socialpub.sandbox.feeds import PinterestPages, TikTokPages, XPages
from socialpub.sandbox.network import NetworkHandler
from socialpub.sandbox.oauth import NetworkAuthorization, PinterestAuthorization, TikTokAuthorization, XAuthorization
from socialpub.sandbox.pinterest import api as pinterest_api
from socialpub.sandbox.pinterest import pins
from socialpub.sandbox.tiktok import api as tiktok_api
from socialpub.sandbox.tiktok import media as tiktok_media
from socialpub.sandbox.world import World, current_world
from socialpub.sandbox.x import api as x_api
from socialpub.sandbox.x import media as x_media


class NetworkRoutes:
    def __init__(self, world: World, network: str) -> None:
        self._world = world
        self._network = network

    def call(
        self,
        method: str | None,
        path: str,
        name: str,
        handler: NetworkHandler,
        sink: OpenSink | None = None,
        prepare: Prepare | None = None,
    ) -> Route:
        """Return the route of an endpoint. None as method: all methods."""
        endpoint = SandboxEndpoint(self._world, self._network, name, handler, sink, prepare)
        return Route(path, endpoint, methods=[method] if method else ["GET", "POST"])

    def oauth(self, oauth: NetworkAuthorization[Any], authorize: str, token: str, revoke: str) -> list[Route]:
        page = SandboxEndpoint(self._world, self._network, "authorize", oauth.authorize)
        return [
            Route(authorize, page, methods=["GET", "POST"], middleware=[OWN_FORM]),
            self.call("POST", token, "token", oauth.token),
            self.call("POST", revoke, "revoke", oauth.revoke),
        ]


def create_app(world: World) -> Starlette:
    """Create one ASGI application for all networks: X below `/x`, TikTok below `/tiktok`, Pinterest below
    `/pinterest/v5`, Bluesky below `/bluesky`."""
    x, tiktok, pinterest, bluesky = (NetworkRoutes(world, name) for name in ("x", "tiktok", "pinterest", "bluesky"))
    x_routes: list[BaseRoute] = [
        x.call("POST", "/2/tweets", "create_post", x_api.create_post),
        x.call("GET", "/2/users/me", "me", x_api.me),
        x.call("GET", "/2/users/{id}/tweets", "list_posts", x_api.list_posts),
        x.call("POST", "/2/media/upload", "upload_one_shot", x_media.one_shot),
        x.call("GET", "/2/media/upload", "upload_status", x_media.status),
        x.call("POST", "/2/media/upload/initialize", "upload_initialize", x_media.initialize),
        x.call("POST", "/2/media/upload/{id}/append", "upload_append", x_media.append),
        x.call("POST", "/2/media/upload/{id}/finalize", "upload_finalize", x_media.finalize),
        x.call("POST", "/2/media/metadata", "metadata", x_media.metadata),
        *x.oauth(XAuthorization(), "/i/oauth2/authorize", "/2/oauth2/token", "/2/oauth2/revoke"),
        *XPages().routes(),
    ]
    publish = "/v2/post/publish"
    tiktok_routes: list[BaseRoute] = [
        *tiktok.oauth(TikTokAuthorization(), "/v2/auth/authorize/", "/v2/oauth/token/", "/v2/oauth/revoke/"),
        tiktok.call("GET", "/v2/user/info/", "user_info", tiktok_api.user_info),
        tiktok.call("POST", f"{publish}/creator_info/query/", "creator_info", tiktok_api.creator_info),
        tiktok.call("POST", f"{publish}/video/init/", "video_init", tiktok_media.init_video),
        tiktok.call("POST", f"{publish}/inbox/video/init/", "inbox_init", tiktok_media.init_inbox),
        tiktok.call("POST", f"{publish}/content/init/", "content_init", tiktok_media.init_content),
        tiktok.call("PUT", "/upload/video/", "upload_chunk", tiktok_media.put_chunk, tiktok_media.open_chunk_sink),
        tiktok.call(
            "POST", f"{publish}/status/fetch/", "status_fetch", tiktok_api.fetch_status, prepare=tiktok_api.pull_first
        ),
        tiktok.call("POST", "/v2/video/query/", "video_query", tiktok_api.query_videos),
        *TikTokPages().routes(),
    ]
    pinterest_routes: list[BaseRoute] = [
        *pinterest.oauth(PinterestAuthorization(), "/oauth/", "/v5/oauth/token", "/v5/oauth/token/revoke"),
        pinterest.call("GET", "/v5/user_account", "user_account", pinterest_api.user_account),
        pinterest.call("GET", "/v5/boards", "list_boards", pinterest_api.list_boards),
        pinterest.call("POST", "/v5/boards", "create_board", pinterest_api.create_board),
        pinterest.call("GET", "/v5/boards/{board_id}", "read_board", pinterest_api.read_board),
        pinterest.call("GET", "/v5/boards/{board_id}/pins", "list_pins", pins.list_pins),
        pinterest.call("GET", "/v5/boards/{board_id}/sections", "list_sections", pinterest_api.list_sections),
        pinterest.call("POST", "/v5/boards/{board_id}/sections", "create_section", pinterest_api.create_section),
        pinterest.call("POST", "/v5/pins", "create_pin", pins.create_pin),
        pinterest.call("POST", "/v5/media", "register_media", pinterest_api.register_media),
        pinterest.call("GET", "/v5/media/{media_id}", "media_status", pinterest_api.media_status),
        pinterest.call("POST", "/upload/", "upload_media", pinterest_api.upload_media, pinterest_api.open_upload_sink),
        *PinterestPages().routes(),
    ]
    server, repository = "/xrpc/com.atproto.server", "/xrpc/com.atproto.repo"
    bluesky_routes: list[BaseRoute] = [
        bluesky.call("POST", f"{server}.createSession", "create_session", sessions.create_session),
        bluesky.call("POST", f"{server}.refreshSession", "refresh_session", sessions.refresh_session),
        bluesky.call("GET", f"{server}.getSession", "get_session", sessions.get_session),
        bluesky.call("POST", f"{server}.deleteSession", "delete_session", sessions.delete_session),
        bluesky.call("GET", f"{server}.describeServer", "describe_server", sessions.describe_server),
        bluesky.call("GET", "/xrpc/com.atproto.identity.resolveHandle", "resolve_handle", sessions.resolve_handle),
        bluesky.call("POST", f"{repository}.putRecord", "put_record", repo.put_record),
        bluesky.call("POST", f"{repository}.createRecord", "create_record", repo.create_record),
        bluesky.call("POST", f"{repository}.deleteRecord", "delete_record", repo.delete_record),
        bluesky.call("POST", f"{repository}.applyWrites", "apply_writes", repo.apply_writes),
        bluesky.call("GET", f"{repository}.getRecord", "get_record", repo.get_record),
        bluesky.call("GET", f"{repository}.listRecords", "list_records", repo.list_records),
        bluesky.call("POST", f"{repository}.uploadBlob", "upload_blob", repo.upload_blob, repo.open_blob_sink),
        bluesky.call("GET", "/xrpc/com.atproto.sync.getBlob", "get_blob", repo.get_blob),
        bluesky.call("GET", "/xrpc/com.atproto.sync.getRepoStatus", "repo_status", repo.repo_status),
        bluesky.call(None, "/xrpc/{method}", "unknown_method", sessions.unknown_method),
        bluesky.call("GET", "/plc/{did}", "did_document", sessions.did_document),
        *BlueskyPages().routes(),
    ]
    app = Starlette(
        routes=[
            Mount("/x", app=_router(x_routes)),
            Mount("/tiktok", app=_router(tiktok_routes)),
            Mount("/pinterest", app=_router(pinterest_routes)),
            Mount("/bluesky", app=_router(bluesky_routes)),
            Mount("/_control", app=_router([*control.routes()]), middleware=[OWN_CONTROL]),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    app.state.world = world
    return app


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


# --- on a port -------------------------------------------------------------------------------------------------------


class SandboxServer(uvicorn.Server):
    """A uvicorn server that closes the world when it stops. All hanging calls end, so that the process ends."""

    def __init__(self, world: World) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(world),
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=2,
                date_header=False,
            )
        )
        self.world = world
        world.serve()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.world.close()
        super().handle_exit(sig, frame)

    def stop(self) -> None:
        """Ask the server to stop, from another thread."""
        self.world.close()
        self.should_exit = True


def run(world: World, sock: socket.socket) -> None:
    """Serve until a signal (in the main thread) or `SandboxServer.stop`."""
    SandboxServer(world).run(sockets=[sock])
