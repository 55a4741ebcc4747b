"""Every address on one screen."""

from starlette.routing import Route

from socialpub.web.api import health, posts, profiles, uploads
from socialpub.web.dashboard.routes import routes as dashboard_routes
from socialpub.web.http import files
from socialpub.web.http.endpoint import route
from socialpub.web.openapi import document
from socialpub.web.pages import oauth_callback, pages

_POST = {
    "DELETE": "To cancel a scheduled post, send POST /api/v1/posts/{id}/cancel.",
    "PUT": "To change a scheduled post, send PATCH with the fields that change.",
    "POST": "To change a scheduled post, send PATCH. To publish another post, send POST /api/v1/posts.",
}
_PROFILE = {"DELETE": "To disconnect an account, send POST /api/v1/profiles/{id}/disconnect."}
_PROFILES = {"POST": "The owner of the appliance connects accounts."}
"""Methods that callers know from other APIs, with what does the same here."""


def routes(*, dashboard: bool = False) -> list[Route]:
    """They are tried in this order: what is asked most comes first. With the dashboard or without its pages."""
    found = [
        route("/api/v1/posts/validate", POST=posts.validate),
        route("/api/v1/posts/{postId}", instead=_POST, GET=posts.show, PATCH=posts.edit),
        route("/api/v1/posts", GET=posts.index, POST=posts.create),
        route("/api/v1/posts/{postId}/cancel", POST=posts.cancel),
        route("/api/v1/posts/{postId}/retry", POST=posts.retry),
        route("/api/v1/posts/{postId}/attempts", GET=posts.attempts),
        route("/api/v1/profiles", instead=_PROFILES, GET=profiles.index),
        route("/api/v1/profiles/{id}", instead=_PROFILE, GET=profiles.show),
        route("/api/v1/profiles/{id}/disconnect", POST=profiles.disconnect),
        route("/api/v1/uploads", POST=uploads.reserve),
        route("/api/v1/uploads/complete", POST=uploads.complete),
        route("/api/v1/publish/logs", GET=profiles.logs),
        route("/storage/uploads/{artifactId}", PUT=uploads.put),
        route("/storage/media/{key:path}", GET=uploads.read_file),
        route("/oauth/{provider}/callback", GET=oauth_callback.callback),
        route("/static/{name:path}", GET=files.show_static),
        route("/problems/{slug}", GET=pages.show_problem),
        route("/healthz", GET=health.live),
        route("/readyz", GET=health.ready),
        route("/metrics", GET=health.metrics),
    ]
    home = dashboard_routes() if dashboard else [route("/", GET=pages.show_home)]
    return [*found, route("/api/v1/openapi-docs", GET=document.endpoint_for(found)), *home]


def verification_routes(file_name: str) -> list[Route]:
    """Where TikTok looks for the file of this name: before everything else, since one lies among the media."""
    return [
        route(f"{folder}/{file_name}", GET=pages.show_tiktok_verification)
        for folder in ("", "/storage/media")
        if file_name
    ]
