"""All routes of the sandbox on one screen."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from socialpub.sandbox import account_pages, avatars, control, own_pages, pages
from socialpub.sandbox.endpoint import OpenSink, Prepare, SandboxEndpoint, SandboxHandler
from socialpub.sandbox.pinterest import boards, pin_creation, pins, user_account, video_upload
from socialpub.sandbox.pinterest import consent as pinterest_consent
from socialpub.sandbox.pinterest import oauth as pinterest_oauth
from socialpub.sandbox.pinterest import pages as pinterest_pages
from socialpub.sandbox.pinterest import videos as pinterest_videos
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.tiktok import chunk_upload, creator_info, post_init, publish_status, user_info
from socialpub.sandbox.tiktok import consent as tiktok_consent
from socialpub.sandbox.tiktok import oauth as tiktok_oauth
from socialpub.sandbox.tiktok import pages as tiktok_pages
from socialpub.sandbox.tiktok import videos as tiktok_videos
from socialpub.sandbox.world import World
from socialpub.sandbox.x import consent as x_consent
from socialpub.sandbox.x import oauth as x_oauth
from socialpub.sandbox.x import pages as x_pages
from socialpub.sandbox.x import posts, timeline, uploads, users

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
        return Route(path, endpoint, methods=["GET", "POST"], middleware=[own_pages.FORM])

    x: list[BaseRoute] = [
        route("x", "POST", "/2/tweets", "create_post", posts.create),
        route("x", "GET", "/2/tweets/{id}", "read_post", posts.read),
        route("x", "DELETE", "/2/tweets/{id}", "delete_post", posts.delete),
        route("x", "GET", "/2/users/me", "me", users.me),
        route("x", "GET", "/2/users/{id}/tweets", "list_posts", timeline.of_user),
        route("x", "POST", "/2/media/upload", "upload_one_shot", uploads.one_shot),
        route("x", "GET", "/2/media/upload", "upload_status", uploads.status),
        route("x", "POST", "/2/media/upload/initialize", "upload_initialize", uploads.initialize),
        route("x", "POST", "/2/media/upload/{id}/append", "upload_append", uploads.append),
        route("x", "POST", "/2/media/upload/{id}/finalize", "upload_finalize", uploads.finalize),
        route("x", "POST", "/2/media/metadata", "metadata", uploads.metadata),
        route("x", "POST", "/2/oauth2/token", "token", x_oauth.token),
        route("x", "POST", "/2/oauth2/revoke", "revoke", x_oauth.revoke),
        consent("x", "/i/oauth2/authorize", x_consent.authorize),
        *avatars.routes(),
        *x_pages.routes(),
    ]
    tiktok: list[BaseRoute] = [
        consent("tiktok", "/v2/auth/authorize/", tiktok_consent.authorize),
        route("tiktok", "POST", "/v2/oauth/token/", "token", tiktok_oauth.token),
        route("tiktok", "POST", "/v2/oauth/revoke/", "revoke", tiktok_oauth.revoke),
        route("tiktok", "GET", "/v2/user/info/", "user_info", user_info.info),
        route("tiktok", "POST", "/v2/post/publish/creator_info/query/", "creator_info", creator_info.info),
        route("tiktok", "POST", "/v2/post/publish/video/init/", "video_init", post_init.video),
        route("tiktok", "POST", "/v2/post/publish/inbox/video/init/", "inbox_init", post_init.inbox),
        route("tiktok", "POST", "/v2/post/publish/content/init/", "content_init", post_init.content),
        route("tiktok", "PUT", "/upload/video/", "upload_chunk", chunk_upload.put, chunk_upload.open_sink),
        route(
            "tiktok",
            "POST",
            "/v2/post/publish/status/fetch/",
            "status_fetch",
            publish_status.fetch,
            None,
            publish_status.pull_first,
        ),
        route("tiktok", "POST", "/v2/post/publish/cancel/", "cancel", publish_status.cancel),
        route("tiktok", "POST", "/v2/video/query/", "video_query", tiktok_videos.query),
        route("tiktok", "POST", "/v2/video/list/", "video_list", tiktok_videos.listing),
        *avatars.routes(),
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
            api("POST", "/oauth/token", "token", pinterest_oauth.token),
            api("POST", "/oauth/token/revoke", "revoke", pinterest_oauth.revoke),
            api("GET", "/user_account", "user_account", user_account.user_account),
            api("GET", "/boards", "list_boards", boards.listing),
            api("POST", "/boards", "create_board", boards.create),
            api("GET", "/boards/{board_id}", "read_board", boards.read),
            api("GET", "/boards/{board_id}/pins", "list_pins", pins.on_board),
            api("GET", "/boards/{board_id}/sections", "list_sections", boards.sections),
            api("POST", "/boards/{board_id}/sections", "create_section", boards.create_section),
            api("POST", "/pins", "create_pin", pin_creation.create, pin_creation.fetch_first),
            api("GET", "/pins", "list_own_pins", pins.own),
            api("GET", "/pins/{pin_id}", "read_pin", pins.read),
            api("DELETE", "/pins/{pin_id}", "delete_pin", pins.delete),
            api("POST", "/media", "register_media", pinterest_videos.register),
            api("GET", "/media", "list_media", pinterest_videos.listing),
            api("GET", "/media/{media_id}", "media_status", pinterest_videos.status),
        ]

    pinterest: list[BaseRoute] = [
        *pinterest_api("/v5"),
        *pinterest_api("/sandbox/v5"),
        consent("pinterest", "/oauth/", pinterest_consent.authorize),
        route("pinterest", "POST", "/upload/", "upload_media", video_upload.upload, video_upload.open_sink),
        *avatars.routes(),
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
            below("/_control", [*control.routes()], [own_pages.CONTROL]),
            *account_pages.routes(),
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
