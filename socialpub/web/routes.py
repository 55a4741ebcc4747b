"""Every address on one screen."""

from starlette.routing import Route

from socialpub.web import static_files
from socialpub.web.api import health, logs, metrics, posts, profiles, storage, uploads
from socialpub.web.dashboard.routes import routes as dashboard_routes
from socialpub.web.endpoint import Endpoint, Methods
from socialpub.web.openapi import document
from socialpub.web.pages import home, oauth_callback, tiktok_verification
from socialpub.web.pages import problems as problem_pages


def routes(*, dashboard: bool = False) -> list[Route]:
    """They are tried in this order: what is asked most comes first. With the dashboard or without its pages."""
    found = [
        _route("/api/v1/posts/validate", POST=posts.validate),
        _route("/api/v1/posts/{postId}", GET=posts.show, PATCH=posts.edit),
        _route("/api/v1/posts", GET=posts.index, POST=posts.create),
        _route("/api/v1/posts/{postId}/cancel", POST=posts.cancel),
        _route("/api/v1/posts/{postId}/retry", POST=posts.retry),
        _route("/api/v1/posts/{postId}/attempts", GET=posts.attempts),
        _route("/api/v1/profiles", GET=profiles.index),
        _route("/api/v1/profiles/{id}", GET=profiles.show),
        _route("/api/v1/profiles/{id}/disconnect", POST=profiles.disconnect),
        _route("/api/v1/uploads", POST=uploads.reserve),
        _route("/api/v1/uploads/complete", POST=uploads.complete),
        _route("/api/v1/publish/logs", GET=logs.index),
        _route("/storage/uploads/{artifactId}", PUT=storage.put),
        _route("/storage/media/{key:path}", GET=storage.read),
        _route("/oauth/{provider}/callback", GET=oauth_callback.callback),
        _route("/static/{name:path}", GET=static_files.show),
        _route("/problems/{slug}", GET=problem_pages.show),
        _route("/healthz", GET=health.live),
        _route("/readyz", GET=health.ready),
        _route("/metrics", GET=metrics.show),
    ]
    pages = dashboard_routes() if dashboard else [_route("/", GET=home.show)]
    return [*found, _route("/api/v1/openapi-docs", GET=document.endpoint_for(found)), *pages]


def verification_routes(file_name: str) -> list[Route]:
    """Where TikTok looks for the file of this name: before everything else, since one lies among the media."""
    return [
        _route(f"{folder}/{file_name}", GET=tiktok_verification.show) for folder in ("", "/storage/media") if file_name
    ]


def _route(path: str, **methods: Endpoint) -> Route:
    # The path's own 405 answers for every method, so the route takes them all.
    return Route(path, Methods(**methods), methods=None)
