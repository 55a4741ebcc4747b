"""Every address of the API on one screen."""

from starlette.routing import Route

from socialpub.api import logs, posts, profiles, storage, uploads
from socialpub.api.endpoint import Endpoint, Methods


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
        _at("/storage/uploads/{artifactId}", PUT=storage.put),
        _at("/storage/media/{key:path}", GET=storage.read),
    ]


def _at(path: str, **methods: Endpoint) -> Route:
    # The path's own 405 answers for every method, so the route takes them all.
    return Route(path, Methods(**methods), methods=None)
