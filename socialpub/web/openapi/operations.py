"""What the OpenAPI document says about each endpoint beyond its shapes: words, examples, and how it can fail.

The examples are data: `examples.json`.
"""

from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import orjson

from socialpub.web.openapi import schemas
from socialpub.web.shapes import Shape


@dataclass(frozen=True)
class Operation:
    """`answers` maps a status to what it means, its shape and an example; `problems` are the statuses of failures
    beyond the usual ones."""

    id: str
    tag: str
    summary: str
    answers: dict[int, tuple[str, type[Shape] | None, Any]]
    problems: tuple[int, ...] = ()
    request: Any = None
    """An example of the JSON body."""
    payload: Any = None
    """An example of the `payload` of a form."""
    notes: str = ""
    headers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Headers of an answer beyond those that every answer has."""


EXAMPLES: dict[str, Any] = orjson.loads(resources.files(__package__).joinpath("examples.json").read_bytes())

OPERATIONS = {
    "GET /api/v1/profiles": Operation(
        "listProfiles",
        "Profiles",
        "List profiles",
        {
            200: (
                "Every profile in the key's scope, oldest first",
                schemas.ProfilesAnswer,
                {"data": [EXAMPLES["profile"]]},
            )
        },
    ),
    "GET /api/v1/profiles/{id}": Operation(
        "getProfile",
        "Profiles",
        "Get a profile",
        {200: ("The profile", schemas.ProfileAnswer, {"data": EXAMPLES["profile"]})},
    ),
    "POST /api/v1/profiles/{id}/disconnect": Operation(
        "disconnectProfile",
        "Profiles",
        "Disconnect a profile",
        {204: ("It is disconnected, for good", None, None)},
        notes="It may be repeated. Scheduled posts that target the profile fail at delivery time.",
    ),
    "GET /api/v1/posts": Operation(
        "listPosts",
        "Posts",
        "List posts",
        {
            200: (
                "A page of posts, newest first",
                schemas.PostsAnswer,
                {"data": [EXAMPLES["post"]], "pagination": EXAMPLES["pagination"]},
            )
        },
        notes="`profileIds` and `providers` together: one delivery must match both. "
        "`page` and `perPage` also accept an empty value or `null`, which mean the default.",
    ),
    "POST /api/v1/posts": Operation(
        "createPost",
        "Posts",
        "Create a post",
        {201: ("Accepted. How it ends is read from the post", schemas.PostAnswer, {"data": EXAMPLES["post"]})},
        problems=(409,),
        request=EXAMPLES["draft"],
        payload=EXAMPLES["payload"],
        headers={201: ("Location",)},
        notes="Published now, or at `post.scheduledAt`. A post has a body, media, or both. In a form, the text field "
        "`payload` holds the JSON, and each media item names its file part by `fileField` in place of `artifactId`.",
    ),
    "POST /api/v1/posts/validate": Operation(
        "validatePost",
        "Posts",
        "Check what the networks would refuse",
        {
            200: (
                "What each network would say; nothing is stored",
                schemas.ValidationAnswer,
                {"data": EXAMPLES["validation"]},
            )
        },
        request=EXAMPLES["draft"],
    ),
    "GET /api/v1/posts/{postId}": Operation(
        "getPost",
        "Posts",
        "Get a post",
        {200: ("The post, with the outcome of each delivery", schemas.PostAnswer, {"data": EXAMPLES["settledPost"]})},
        notes="With `wait` it is answered as soon as the post is settled or canceled, else after that many seconds "
        "with what is true then.",
    ),
    "PATCH /api/v1/posts/{postId}": Operation(
        "updatePost",
        "Posts",
        "Change a scheduled post",
        {200: ("The post as it is now", schemas.PostAnswer, {"data": EXAMPLES["post"]})},
        problems=(409,),
        request=EXAMPLES["change"],
        notes="At least one field is needed. `post.scheduledAt: null` publishes at once.",
    ),
    "POST /api/v1/posts/{postId}/cancel": Operation(
        "cancelPost",
        "Posts",
        "Cancel a scheduled post",
        {200: ("The canceled post", schemas.PostAnswer, {"data": EXAMPLES["canceledPost"]})},
        problems=(409,),
    ),
    "GET /api/v1/posts/{postId}/attempts": Operation(
        "listAttempts",
        "Posts",
        "List the attempts of a post",
        {200: ("Every attempt, oldest first", schemas.AttemptsAnswer, {"data": [EXAMPLES["attempt"]]})},
    ),
    "POST /api/v1/uploads": Operation(
        "reserveUpload",
        "Uploads",
        "Reserve an upload",
        {201: ("Where the bytes go, with one PUT", schemas.ReservationAnswer, {"data": EXAMPLES["reservation"]})},
        problems=(409,),
        request=EXAMPLES["uploadRequest"],
    ),
    "POST /api/v1/uploads/complete": Operation(
        "completeUpload",
        "Uploads",
        "Complete an upload",
        {200: ("The verified artifact", schemas.ArtifactAnswer, {"data": EXAMPLES["artifact"]})},
        problems=(409,),
        request=EXAMPLES["completeRequest"],
        notes="A file that is not what it was declared to be is rejected: 400 says why, and its bytes are removed.",
    ),
    "GET /api/v1/publish/logs": Operation(
        "listLogs",
        "Publishing logs",
        "List publishing logs",
        {200: ("What happened to deliveries, newest first", schemas.LogsAnswer, {"data": [EXAMPLES["logEntry"]]})},
        notes="`limit` and `offset` also accept an empty value or `null`, which mean the default.",
    ),
}
