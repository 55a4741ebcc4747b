"""Every address on one screen."""

from starlette.routing import Route

from socialpub.web.api import health, logs, metrics, posts, profiles, storage, uploads
from socialpub.web.endpoint import Endpoint, Methods
from socialpub.web.openapi import document
from socialpub.web.pages import oauth_callback, verification
from socialpub.web.pages import problems as meanings


def routes() -> list[Route]:
    """In this order they are tried: what is asked most comes first."""
    return [
        _at("/api/v1/posts/validate", POST=posts.validate),
        _at("/api/v1/posts/{postId}", GET=posts.show, PATCH=posts.edit),
        _at("/api/v1/posts", GET=posts.index, POST=posts.create),
        _at("/api/v1/posts/{postId}/cancel", POST=posts.cancel),
        _at("/api/v1/posts/{postId}/attempts", GET=posts.attempts),
        _at("/api/v1/profiles", GET=profiles.index),
        _at("/api/v1/profiles/{id}", GET=profiles.show),
        _at("/api/v1/profiles/{id}/disconnect", POST=profiles.disconnect),
        _at("/api/v1/uploads", POST=uploads.reserve),
        _at("/api/v1/uploads/complete", POST=uploads.complete),
        _at("/api/v1/publish/logs", GET=logs.index),
        _at("/api/v1/openapi-docs", GET=document.show),
        _at("/storage/uploads/{artifactId}", PUT=storage.put),
        _at("/storage/media/{key:path}", GET=storage.read),
        _at("/oauth/{provider}/callback", GET=oauth_callback.callback),
        _at("/problems/{slug}", GET=meanings.show),
        _at("/healthz", GET=health.live),
        _at("/readyz", GET=health.ready),
        _at("/metrics", GET=metrics.show),
    ]


def verification_routes(file_name: str) -> list[Route]:
    """Where TikTok looks for the file of this name: before everything else, since one lies among the media."""
    return [_at(f"{folder}/{file_name}", GET=verification.show) for folder in ("", "/storage/media") if file_name]


def _at(path: str, **methods: Endpoint) -> Route:
    # The path's own 405 answers for every method, so the route takes them all.
    return Route(path, Methods(**methods), methods=None)
