"""All routes of the sandbox on one screen."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from socialpub.sandbox import control, feed
from socialpub.sandbox.call import Answer
from socialpub.sandbox.endpoint import Endpoint, Errand, Handler, OpenSink
from socialpub.sandbox.pinterest import boards, media, pins
from socialpub.sandbox.pinterest import consent as pinterest_consent
from socialpub.sandbox.pinterest import oauth as pinterest_oauth
from socialpub.sandbox.pinterest import pages as pinterest_pages
from socialpub.sandbox.pinterest import users as pinterest_users
from socialpub.sandbox.tiktok import consent as tiktok_consent
from socialpub.sandbox.tiktok import creator, inits, status, videos
from socialpub.sandbox.tiktok import oauth as tiktok_oauth
from socialpub.sandbox.tiktok import pages as tiktok_pages
from socialpub.sandbox.tiktok import uploads as tiktok_uploads
from socialpub.sandbox.tiktok import users as tiktok_users
from socialpub.sandbox.world import World
from socialpub.sandbox.x import accounts, oauth, posts, uploads

PREFIXES = {"x": "/x/", "tiktok": "/tiktok/", "pinterest": "/pinterest/"}


def create_app(world: World) -> Starlette:
    """One ASGI application for all networks: X below `/x`, TikTok below `/tiktok`, Pinterest below `/pinterest/v5` and
    its own sandbox below `/pinterest/sandbox/v5`."""

    def route(
        network: str,
        method: str,
        path: str,
        name: str,
        handler: Handler,
        sink: OpenSink | None = None,
        errand: Errand | None = None,
    ) -> Route:
        return Route(path, Endpoint(world, network, name, handler, sink, errand), methods=method.split())

    x: list[BaseRoute] = [
        route("x", "POST", "/2/tweets", "create_post", posts.create),
        route("x", "GET", "/2/tweets/{id}", "read_post", posts.read),
        route("x", "DELETE", "/2/tweets/{id}", "delete_post", posts.delete),
        route("x", "GET", "/2/users/me", "me", accounts.me),
        route("x", "GET", "/2/users/{id}/tweets", "list_posts", posts.of_user),
        route("x", "POST", "/2/media/upload", "upload_one_shot", uploads.one_shot),
        route("x", "GET", "/2/media/upload", "upload_status", uploads.status),
        route("x", "POST", "/2/media/upload/initialize", "upload_initialize", uploads.initialize),
        route("x", "POST", "/2/media/upload/{id}/append", "upload_append", uploads.append),
        route("x", "POST", "/2/media/upload/{id}/finalize", "upload_finalize", uploads.finalize),
        route("x", "POST", "/2/media/metadata", "metadata", uploads.metadata),
        route("x", "POST", "/2/oauth2/token", "token", oauth.token),
        route("x", "POST", "/2/oauth2/revoke", "revoke", oauth.revoke),
        route("x", "GET POST", "/i/oauth2/authorize", "authorize", oauth.authorize),
        *feed.routes(),
    ]
    tiktok: list[BaseRoute] = [
        route("tiktok", "GET POST", "/v2/auth/authorize/", "authorize", tiktok_consent.authorize),
        route("tiktok", "POST", "/v2/oauth/token/", "token", tiktok_oauth.token),
        route("tiktok", "POST", "/v2/oauth/revoke/", "revoke", tiktok_oauth.revoke),
        route("tiktok", "GET", "/v2/user/info/", "user_info", tiktok_users.info),
        route("tiktok", "POST", "/v2/post/publish/creator_info/query/", "creator_info", creator.info),
        route("tiktok", "POST", "/v2/post/publish/video/init/", "video_init", inits.video),
        route("tiktok", "POST", "/v2/post/publish/inbox/video/init/", "inbox_init", inits.inbox),
        route("tiktok", "POST", "/v2/post/publish/content/init/", "content_init", inits.content),
        route("tiktok", "PUT", "/upload/video/", "upload_chunk", tiktok_uploads.put, tiktok_uploads.open_sink),
        route(
            "tiktok", "POST", "/v2/post/publish/status/fetch/", "status_fetch", status.fetch, None, status.pull_first
        ),
        route("tiktok", "POST", "/v2/post/publish/cancel/", "cancel", status.cancel),
        route("tiktok", "POST", "/v2/video/query/", "video_query", videos.query),
        route("tiktok", "POST", "/v2/video/list/", "video_list", videos.listing),
        feed.avatar_route(),
        *tiktok_pages.routes(),
    ]

    def pinterest_api(base: str) -> list[BaseRoute]:
        def api(
            method: str,
            path: str,
            name: str,
            handler: Handler,
            errand: Errand | None = None,
        ) -> Route:
            return route("pinterest", method, base + path, name, handler, None, errand)

        return [
            api("POST", "/oauth/token", "token", pinterest_oauth.token),
            api("POST", "/oauth/token/revoke", "revoke", pinterest_oauth.revoke),
            api("GET", "/user_account", "user_account", pinterest_users.user_account),
            api("GET", "/boards", "list_boards", boards.listing),
            api("POST", "/boards", "create_board", boards.create),
            api("GET", "/boards/{board_id}", "read_board", boards.read),
            api("GET", "/boards/{board_id}/pins", "list_pins", pins.on_board),
            api("GET", "/boards/{board_id}/sections", "list_sections", boards.sections),
            api("POST", "/boards/{board_id}/sections", "create_section", boards.create_section),
            api("POST", "/pins", "create_pin", pins.create, pins.fetch_first),
            api("GET", "/pins", "list_own_pins", pins.own),
            api("GET", "/pins/{pin_id}", "read_pin", pins.read),
            api("DELETE", "/pins/{pin_id}", "delete_pin", pins.delete),
            api("POST", "/media", "register_media", media.register),
            api("GET", "/media", "list_media", media.listing),
            api("GET", "/media/{media_id}", "media_status", media.status),
        ]

    pinterest: list[BaseRoute] = [
        *pinterest_api("/v5"),
        *pinterest_api("/sandbox/v5"),
        route("pinterest", "GET POST", "/oauth/", "authorize", pinterest_consent.authorize),
        route("pinterest", "POST", "/upload/", "upload_media", media.upload, media.open_sink),
        feed.avatar_route(),
        *pinterest_pages.routes(),
    ]
    app = Starlette(
        routes=[
            Mount("/x", routes=x),
            Mount("/tiktok", routes=tiktok),
            Mount("/pinterest", routes=pinterest),
            Mount("/_control", routes=control.routes()),
            *feed.front_routes(),
        ],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    for mount in app.routes:
        if isinstance(mount, Mount):
            inner = mount.app
            inner.redirect_slashes = False  # type: ignore[attr-defined]
            inner.default = _nothing_here  # type: ignore[attr-defined]
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


def as_response(answer: Answer) -> Response:
    headers = dict(answer.headers)
    if answer.content_type:
        headers["content-type"] = answer.content_type
    return Response(answer.body, answer.status, headers)
