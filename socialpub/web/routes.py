"""The routes of all URLs."""

from collections.abc import Iterable, Iterator

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.routing import BaseRoute, Mount, Route, Router

from socialpub.core.settings.loader import Settings
from socialpub.web.api import health, posts, profiles, uploads
from socialpub.web.dashboard import calendar, keys, log, overview, sign_in, system
from socialpub.web.dashboard import profiles as profile_pages
from socialpub.web.dashboard.compose import media, views
from socialpub.web.dashboard.posts import actions
from socialpub.web.dashboard.posts import pages as post_pages
from socialpub.web.http.responses import JSONCompression
from socialpub.web.http.static import StaticFiles
from socialpub.web.mcp import endpoint as agents
from socialpub.web.openapi import document
from socialpub.web.pages import manual, oauth_callback, pages

POST = ["POST"]

HINTS = {
    ("/api/v1/posts/{postId}", "DELETE"): "To cancel a scheduled post, send POST /api/v1/posts/{id}/cancel.",
    ("/api/v1/posts/{postId}", "PUT"): "To change a scheduled post, send PATCH with the fields to change.",
    ("/api/v1/posts/{postId}", "POST"): "To change a scheduled post, send PATCH. To publish another post, send POST "
    "/api/v1/posts.",
    ("/api/v1/profiles/{id}", "DELETE"): "To disconnect an account, send POST /api/v1/profiles/{id}/disconnect.",
    ("/api/v1/profiles", "POST"): "The owner of the appliance connects accounts.",
}
"""Hints for methods that callers know from other APIs."""

NEVER_COMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/x-tar", "image/x-icon")
COMPRESSED = Middleware(GZipMiddleware, compresslevel=5, exclude_content_types=NEVER_COMPRESSED)
"""For pages and static files. Stored files and backups are never compressed."""


class _PostConvertor(StringConvertor):
    """The id of a post. GET /posts/validate is a wrong method, not a wrong id."""

    regex = "(?!validate$)[^/]+"


register_url_convertor("post", _PostConvertor())

API = [
    Route("/posts/validate", posts.validate, methods=POST),
    Route("/posts/{postId:post}", posts.show),
    Route("/posts/{postId:post}", posts.edit, methods=["PATCH"]),
    Route("/posts", posts.index),
    Route("/posts", posts.create, methods=POST),
    Route("/posts/{postId}/cancel", posts.cancel, methods=POST),
    Route("/posts/{postId}/retry", posts.retry, methods=POST),
    Route("/posts/{postId}/attempts", posts.attempts),
    Route("/profiles", profiles.index),
    Route("/profiles/{id}", profiles.show),
    Route("/profiles/{id}/choices", profiles.list_choices),
    Route("/profiles/{id}/disconnect", profiles.disconnect, methods=POST),
    Route("/uploads", uploads.reserve, methods=POST),
    Route("/uploads/complete", uploads.complete, methods=POST),
    Route("/uploads/import", uploads.import_url, methods=POST),
    Route("/publish/logs", profiles.logs),
]
"""The order of matching; frequent requests come first."""

PAGES = [
    Route("/oauth/{provider}/callback", oauth_callback.callback),
    Route("/problems/{slug}", pages.show_problem),
    Route("/manual", manual.show_index),
    Route("/manual/{topic}", manual.show_topic),
    Route("/manual/images/{name}", manual.show_image),
    Route("/tiktok{name}.txt", pages.show_tiktok_verification),
    Route("/healthz", health.live),
    Route("/readyz", health.ready),
    Route("/metrics", health.metrics),
]

DASHBOARD = [
    Route("/", overview.front),
    Route("/compose", views.show),
    Route("/compose", views.submit, methods=POST),
    Route("/posts/{postId}/edit", views.edit_form),
    Route("/posts/{postId}/edit", views.save, methods=POST),
    Route("/artifacts/{artifactId}/thumbnail", media.thumbnail),
    Route("/deliveries/{deliveryId}/card-image", post_pages.card_image),
    Route("/compose/check", views.check_live, methods=POST),
    Route("/compose/uploads", media.reserve, methods=POST),
    Route("/compose/uploads/complete", media.complete, methods=POST),
    Route("/calendar", calendar.show),
    Route("/login", sign_in.form),
    Route("/login", sign_in.submit, methods=POST),
    Route("/setup", sign_in.set_up_form),
    Route("/setup", sign_in.set_up, methods=POST),
    Route("/logout", sign_in.sign_out, methods=POST),
    Route("/posts", post_pages.index),
    Route("/posts/{postId}", post_pages.show),
    Route("/posts/{postId}/approve", actions.approve, methods=POST),
    Route("/posts/{postId}/cancel", actions.ask_cancel),
    Route("/posts/{postId}/cancel", actions.cancel, methods=POST),
    Route("/posts/{postId}/publish", actions.ask_publish),
    Route("/posts/{postId}/publish", actions.publish, methods=POST),
    Route("/posts/{postId}/stop", actions.ask_stop),
    Route("/posts/{postId}/stop", actions.stop, methods=POST),
    Route("/posts/{postId}/again", actions.ask_again),
    Route("/posts/{postId}/again", actions.publish_again, methods=POST),
    Route("/posts/{postId}/reschedule", actions.reschedule_form),
    Route("/posts/{postId}/reschedule", actions.reschedule, methods=POST),
    Route("/profiles", profile_pages.index),
    Route("/profiles/connect/{provider}", profile_pages.connect_new, methods=POST),
    Route("/profiles/connecting/{consentId}", profile_pages.waiting),
    Route("/profiles/connecting/{consentId}", profile_pages.paste, methods=POST),
    Route("/profiles/{profileId}", profile_pages.show),
    Route("/profiles/{profileId}/picture", profile_pages.avatar),
    Route("/profiles/{profileId}/reconnect", profile_pages.connect_again, methods=POST),
    Route("/profiles/{profileId}/refresh", profile_pages.refresh, methods=POST),
    Route("/profiles/{profileId}/rename", profile_pages.rename, methods=POST),
    Route("/profiles/{profileId}/options", profile_pages.set_options, methods=POST),
    Route("/profiles/{profileId}/boards", profile_pages.create_board, methods=POST),
    Route("/profiles/{profileId}/sections", profile_pages.create_section, methods=POST),
    Route("/profiles/{profileId}/disconnect", profile_pages.confirm_disconnect),
    Route("/profiles/{profileId}/disconnect", profile_pages.disconnect, methods=POST),
    Route("/keys", keys.index),
    Route("/keys", keys.create, methods=POST),
    Route("/keys/keep-restored", keys.keep_restored, methods=POST),
    Route("/keys/{keyId}/revoke", keys.revoke_form),
    Route("/keys/{keyId}/revoke", keys.revoke, methods=POST),
    Route("/log", log.index),
    Route("/log.csv", log.download),
    Route("/audit", log.audit_log),
    Route("/system", system.show),
    Route("/system/findings", system.show_findings),
    Route("/system/pause", system.pause_publishing, methods=POST),
    Route("/system/resume", system.resume_form),
    Route("/system/resume", system.resume_publishing, methods=POST),
    Route("/system/try-held", system.try_held, methods=POST),
    Route("/system/backup", system.download_backup, methods=POST),
    Route("/system/notify", system.add_address, methods=POST),
    Route("/system/notify/{addressId}/remove", system.ask_remove_address),
    Route("/system/notify/{addressId}/remove", system.remove_address, methods=POST),
    Route("/system/notify-test", system.test_addresses, methods=POST),
    Route("/system/sessions/{sessionId}/end", sign_in.end_session, methods=POST),
    Route("/system/password", sign_in.change_password, methods=POST),
]
"""The pages, in the order of the menu."""


def all_routes(settings: Settings) -> list[BaseRoute]:
    api = [*API, Route("/openapi-docs", document.endpoint_for(API))]
    storage = [
        Route("/media/tiktok{name}.txt", pages.show_tiktok_verification),
        Route("/uploads/{artifactId}", uploads.put, methods=["PUT"]),
        Route("/media/{key:path}", uploads.read_file),
    ]
    agent_routes = [Route("/mcp", agents.post, methods=POST)] if settings.mcp.enabled else []
    home = DASHBOARD if settings.dashboard.enabled else [Route("/", pages.show_home)]
    return [
        _mount("/api/v1", api, Middleware(JSONCompression, compresslevel=5, exclude_content_types=())),
        _mount("/storage", storage),
        Mount("/static/{version}", StaticFiles(), middleware=[COMPRESSED]),
        _mount("", [*PAGES, *agent_routes, *home], COMPRESSED),
    ]


def _mount(path: str, routes: list[Route], *middleware: Middleware) -> Mount:
    return Mount(path, Router(routes, redirect_slashes=False), middleware=middleware)


# --- documented paths -------------------------------------------------------------------------------------------------


def flatten(routes: Iterable[BaseRoute], below: str = "") -> Iterator[tuple[str, Route]]:
    """Return each route with its documented path, such as `/api/v1/posts/{postId}`."""
    for route in routes:
        if isinstance(route, Mount):
            yield from flatten(route.routes, below + route.path)
        elif isinstance(route, Route):
            yield below + route.path_format, route


def find_methods(routes: Iterable[BaseRoute], path: str, method: str) -> tuple[str, str] | None:
    """Return the methods of a documented path, and a hint that begins with a space. None for a static file."""
    methods = {name for documented, route in flatten(routes) if documented == path for name in route.methods or ()}
    hint = HINTS.get((path, method))
    return (", ".join(sorted(methods)), f" {hint}" if hint else "") if methods else None
