"""All routes of the sandbox on one screen."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from socialpub.sandbox import control, pages
from socialpub.sandbox.endpoint import OpenSink, Prepare, SandboxEndpoint, SandboxHandler
from socialpub.sandbox.messages import Reply
from socialpub.sandbox.pinterest import boards, pins
from socialpub.sandbox.pinterest import media as pinterest_media
from socialpub.sandbox.pinterest import oauth as pinterest_consent
from socialpub.sandbox.pinterest import pages as pinterest_pages
from socialpub.sandbox.tiktok import api as tiktok_api
from socialpub.sandbox.tiktok import media as tiktok_media
from socialpub.sandbox.tiktok import oauth as tiktok_consent
from socialpub.sandbox.tiktok import pages as tiktok_pages
from socialpub.sandbox.world import World
from socialpub.sandbox.x import api, media
from socialpub.sandbox.x import oauth as x_oauth
from socialpub.sandbox.x import pages as x_pages

PREFIXES = {"x": "/x/", "tiktok": "/tiktok/", "pinterest": "/pinterest/"}


def create_app(world: World) -> Starlette:
    """One ASGI application for all networks: X below `/x`, TikTok below `/tiktok`, Pinterest below `/pinterest/v5` and
    its own sandbox below `/pinterest/sandbox/v5`."""

    def route(
        network: str,
        method: str,
        path: str,
        name: str,
        handler: SandboxHandler,
        sink: OpenSink | None = None,
        prepare: Prepare | None = None,
    ) -> Route:
        return Route(path, SandboxEndpoint(world, network, name, handler, sink, prepare), methods=method.split())

    def consent(network: str, path: str, handler: SandboxHandler) -> Route:
        endpoint = SandboxEndpoint(world, network, "authorize", handler)
        return Route(path, endpoint, methods=["GET", "POST"], middleware=[pages.OWN_FORM])

    x: list[BaseRoute] = [
        route("x", "POST", "/2/tweets", "create_post", api.create_post),
        route("x", "GET", "/2/tweets/{id}", "read_post", api.read_post),
        route("x", "DELETE", "/2/tweets/{id}", "delete_post", api.delete_post),
        route("x", "GET", "/2/users/me", "me", api.me),
        route("x", "GET", "/2/users/{id}/tweets", "list_posts", api.list_posts),
        route("x", "POST", "/2/media/upload", "upload_one_shot", media.one_shot),
        route("x", "GET", "/2/media/upload", "upload_status", media.status),
        route("x", "POST", "/2/media/upload/initialize", "upload_initialize", media.initialize),
        route("x", "POST", "/2/media/upload/{id}/append", "upload_append", media.append),
        route("x", "POST", "/2/media/upload/{id}/finalize", "upload_finalize", media.finalize),
        route("x", "POST", "/2/media/metadata", "metadata", media.metadata),
        route("x", "POST", "/2/oauth2/token", "token", x_oauth.token),
        route("x", "POST", "/2/oauth2/revoke", "revoke", x_oauth.revoke),
        consent("x", "/i/oauth2/authorize", x_oauth.authorize),
        *pages.avatar_routes(),
        *x_pages.routes(),
    ]
    tiktok: list[BaseRoute] = [
        consent("tiktok", "/v2/auth/authorize/", tiktok_consent.authorize),
        route("tiktok", "POST", "/v2/oauth/token/", "token", tiktok_consent.token),
        route("tiktok", "POST", "/v2/oauth/revoke/", "revoke", tiktok_consent.revoke),
        route("tiktok", "GET", "/v2/user/info/", "user_info", tiktok_api.user_info),
        route("tiktok", "POST", "/v2/post/publish/creator_info/query/", "creator_info", tiktok_api.creator_info),
        route("tiktok", "POST", "/v2/post/publish/video/init/", "video_init", tiktok_media.init_video),
        route("tiktok", "POST", "/v2/post/publish/inbox/video/init/", "inbox_init", tiktok_media.init_inbox),
        route("tiktok", "POST", "/v2/post/publish/content/init/", "content_init", tiktok_media.init_content),
        route("tiktok", "PUT", "/upload/video/", "upload_chunk", tiktok_media.put_chunk, tiktok_media.open_chunk_sink),
        route(
            "tiktok",
            "POST",
            "/v2/post/publish/status/fetch/",
            "status_fetch",
            tiktok_api.fetch_status,
            None,
            tiktok_api.pull_first,
        ),
        route("tiktok", "POST", "/v2/post/publish/cancel/", "cancel", tiktok_api.cancel),
        route("tiktok", "POST", "/v2/video/query/", "video_query", tiktok_api.query_videos),
        route("tiktok", "POST", "/v2/video/list/", "video_list", tiktok_api.list_videos),
        *pages.avatar_routes(),
        *tiktok_pages.routes(),
    ]

    def pinterest_api(base: str) -> list[BaseRoute]:
        def api(
            method: str,
            path: str,
            name: str,
            handler: SandboxHandler,
            prepare: Prepare | None = None,
        ) -> Route:
            return route("pinterest", method, base + path, name, handler, None, prepare)

        return [
            api("POST", "/oauth/token", "token", pinterest_consent.token),
            api("POST", "/oauth/token/revoke", "revoke", pinterest_consent.revoke),
            api("GET", "/user_account", "user_account", boards.user_account),
            api("GET", "/boards", "list_boards", boards.list_boards),
            api("POST", "/boards", "create_board", boards.create_board),
            api("GET", "/boards/{board_id}", "read_board", boards.read_board),
            api("GET", "/boards/{board_id}/pins", "list_pins", pins.list_pins),
            api("GET", "/boards/{board_id}/sections", "list_sections", boards.list_sections),
            api("POST", "/boards/{board_id}/sections", "create_section", boards.create_section),
            api("POST", "/pins", "create_pin", pins.create_pin, pins.fetch_first),
            api("GET", "/pins", "list_own_pins", pins.list_own_pins),
            api("GET", "/pins/{pin_id}", "read_pin", pins.read_pin),
            api("DELETE", "/pins/{pin_id}", "delete_pin", pins.delete_pin),
            api("POST", "/media", "register_media", pinterest_media.register_media),
            api("GET", "/media", "list_media", pinterest_media.list_media),
            api("GET", "/media/{media_id}", "media_status", pinterest_media.media_status),
        ]

    pinterest: list[BaseRoute] = [
        *pinterest_api("/v5"),
        *pinterest_api("/sandbox/v5"),
        consent("pinterest", "/oauth/", pinterest_consent.authorize),
        route(
            "pinterest",
            "POST",
            "/upload/",
            "upload_media",
            pinterest_media.upload_media,
            pinterest_media.open_upload_sink,
        ),
        *pages.avatar_routes(),
        *pinterest_pages.routes(),
    ]

    def below(path: str, routes: list[BaseRoute], middleware: list[Middleware] | None = None) -> Mount:
        router = Router(routes=routes, redirect_slashes=False, default=_nothing_here)
        return Mount(path, app=router, middleware=middleware)

    app = Starlette(
        routes=[
            below("/x", x),
            below("/tiktok", tiktok),
            below("/pinterest", pinterest),
            below("/_control", [*control.routes()], [pages.OWN_CONTROL]),
            *pages.account_routes(),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    app.state.world = world
    return app


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    raise HTTPException(404)


async def _refuse(request: Request, error: Exception) -> Response:
    """404 and 405 in the words of the network they happen on."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    world: World = request.app.state.world
    for name, prefix in PREFIXES.items():
        if path.startswith(prefix):
            return as_response(world.networks[name].http_error(error.status_code))
    return PlainTextResponse(error.detail, error.status_code, headers=error.headers)


def as_response(reply: Reply) -> Response:
    headers = dict(reply.headers)
    if reply.content_type:
        headers["content-type"] = reply.content_type
    return Response(reply.body, reply.status, headers)
