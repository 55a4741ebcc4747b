"""What the OpenAPI document says about each endpoint beyond its shapes: words, examples, and how it can fail."""

from dataclasses import dataclass, field
from typing import Any

from socialpub.web.openapi import schemas
from socialpub.web.shapes import Shape


@dataclass(frozen=True)
class Described:
    """One operation. `answers` maps a status to what it means and its shape; `problems` are those beyond the usual."""

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


PROFILE = {
    "id": "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01",
    "name": "Garden diary",
    "provider": "x",
    "status": "active",
    "username": "gardendiary",
    "postsCount": 12,
    "createdAt": "2026-10-12T09:00:00.000Z",
    "updatedAt": "2026-11-20T07:30:00.000Z",
}
DELIVERY = {
    "provider": "x",
    "profileName": "Garden diary",
    "status": "pending",
    "providerOptions": {"replySettings": "following"},
    "profileId": PROFILE["id"],
    "scheduledAt": "2026-11-22T08:00:00.000Z",
}
POST = {
    "id": "019ac5d3-0a10-7c52-8a3b-0d5c86f1b402",
    "status": "scheduled",
    "createdAt": "2026-11-21T11:30:00.000Z",
    "updatedAt": "2026-11-21T11:30:00.000Z",
    "media": [
        {
            "id": "019ac5d3-0a11-7d10-b1c2-5a0f7e8d9c03",
            "artifactId": "019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04",
            "artifactStatus": "verified",
            "contentType": "image/jpeg",
            "url": "https://social.example/storage/media/3f/9a/x.jpg?expires=1795264200&signature=abc",
            "alt": "First frost on the cabbages",
        }
    ],
    "deliveries": [DELIVERY],
    "body": "First frost.",
    "scheduledAt": "2026-11-22T08:00:00.000Z",
}
SETTLED = {
    **{name: value for name, value in POST.items() if name != "scheduledAt"},
    "status": "settled",
    "deliveries": [
        {
            "provider": "x",
            "profileName": "Garden diary",
            "status": "published",
            "providerOptions": {},
            "profileId": PROFILE["id"],
            "publishedAt": "2026-11-21T11:30:02.120Z",
            "providerPostId": "1991828371234567890",
            "url": "https://x.com/gardendiary/status/1991828371234567890",
        }
    ],
}
CANCELED = {
    **POST,
    "status": "canceled",
    "canceledAt": "2026-11-21T12:00:00.000Z",
    "deliveries": [{**DELIVERY, "status": "canceled"}],
}
DRAFT = {
    "post": {"body": "First frost.", "scheduledAt": "2036-11-22T08:00:00Z"},
    "profiles": [PROFILE["id"]],
    "media": [{"artifactId": "019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04", "alt": "First frost on the cabbages"}],
    "providerOptions": {"x": {"replySettings": "following"}},
}
PAYLOAD = {**DRAFT, "media": [{"fileField": "frost", "alt": "First frost on the cabbages"}]}
ARTIFACT = {
    "artifactId": "019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04",
    "storageKey": "3f/9a/019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04-1.jpg",
    "url": "https://social.example/storage/media/3f/9a/x.jpg?expires=1795264200&signature=abc",
    "createdAt": "2026-11-21T11:29:30.000Z",
    "kind": "image",
    "mimeType": "image/jpeg",
    "sizeBytes": 482113,
}
RESERVATION = {
    "artifactId": ARTIFACT["artifactId"],
    "uploadUrl": "https://social.example/storage/uploads/019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04?expires=1795264200&signature=abc",
    "requiredHeaders": {"content-type": "image/jpeg"},
}
ATTEMPT = {
    "deliveryId": "019ac5d3-0a12-7e01-a7b8-6c5d4e3f2a05",
    "profileId": PROFILE["id"],
    "provider": "x",
    "step": "create_post",
    "startedAt": "2026-11-21T11:30:00.400Z",
    "endedAt": "2026-11-21T11:30:02.120Z",
    "outcome": "published",
}
LOG_ENTRY = {
    "id": "019ac5d3-0a13-7f44-8899-7d6e5f4a3b06",
    "deliveryId": ATTEMPT["deliveryId"],
    "postId": POST["id"],
    "provider": "x",
    "type": "published",
    "occurredAt": "2026-11-21T11:30:02.120Z",
    "postBody": "First frost.",
    "profileName": "Garden diary",
    "releaseUrl": "https://x.com/gardendiary/status/1991828371234567890",
    "providerPostId": "1991828371234567890",
}
VALIDATION = {
    "valid": False,
    "deliveries": [
        {
            "profileId": PROFILE["id"],
            "provider": "x",
            "problems": [
                {
                    "path": ["providerOptions", "x", "replySetting"],
                    "message": "is not known; did you mean replySettings?",
                }
            ],
        }
    ],
}

DESCRIBED = {
    "GET /api/v1/profiles": Described(
        "listProfiles",
        "Profiles",
        "List profiles",
        {200: ("Every profile in the key's scope, oldest first", schemas.ProfilesAnswer, {"data": [PROFILE]})},
    ),
    "GET /api/v1/profiles/{id}": Described(
        "getProfile", "Profiles", "Get a profile", {200: ("The profile", schemas.ProfileAnswer, {"data": PROFILE})}
    ),
    "POST /api/v1/profiles/{id}/disconnect": Described(
        "disconnectProfile",
        "Profiles",
        "Disconnect a profile",
        {204: ("It is disconnected, for good", None, None)},
        notes="Twice is fine. Scheduled posts that target the profile fail at delivery time.",
    ),
    "GET /api/v1/posts": Described(
        "listPosts",
        "Posts",
        "List posts",
        {
            200: (
                "A page of posts, newest first",
                schemas.PostsAnswer,
                {"data": [POST], "pagination": {"page": 0, "perPage": 20, "total": 1}},
            )
        },
        notes="`profileIds` and `providers` together: one delivery must match both. "
        "`page` and `perPage` also accept an empty value or `null`, which mean the default.",
    ),
    "POST /api/v1/posts": Described(
        "createPost",
        "Posts",
        "Create a post",
        {201: ("Accepted. How it ends is read from the post", schemas.PostAnswer, {"data": POST})},
        problems=(409,),
        request=DRAFT,
        payload=PAYLOAD,
        headers={201: ("Location",)},
        notes="Published now, or at `post.scheduledAt`. A post has a body, media, or both. In a form, the text field "
        "`payload` holds the JSON, and each media item names its file part by `fileField` in place of `artifactId`.",
    ),
    "POST /api/v1/posts/validate": Described(
        "validatePost",
        "Posts",
        "Learn what the networks would refuse",
        {200: ("What each network would say; nothing is stored", schemas.ValidationAnswer, {"data": VALIDATION})},
        request=DRAFT,
    ),
    "GET /api/v1/posts/{postId}": Described(
        "getPost",
        "Posts",
        "Get a post",
        {200: ("The post, with the outcome of each delivery", schemas.PostAnswer, {"data": SETTLED})},
        notes="With `wait` it is answered as soon as the post is settled or canceled, else after that many seconds "
        "with what is true then.",
    ),
    "PATCH /api/v1/posts/{postId}": Described(
        "updatePost",
        "Posts",
        "Change a scheduled post",
        {200: ("The post as it is now", schemas.PostAnswer, {"data": POST})},
        problems=(409,),
        request={"post": {"scheduledAt": "2036-11-23T08:00:00Z"}},
        notes="At least one field is needed. `post.scheduledAt: null` publishes at once.",
    ),
    "POST /api/v1/posts/{postId}/cancel": Described(
        "cancelPost",
        "Posts",
        "Cancel a scheduled post",
        {200: ("The canceled post", schemas.PostAnswer, {"data": CANCELED})},
        problems=(409,),
    ),
    "GET /api/v1/posts/{postId}/attempts": Described(
        "listAttempts",
        "Posts",
        "See why a post is as it is",
        {200: ("Every attempt, oldest first", schemas.AttemptsAnswer, {"data": [ATTEMPT]})},
    ),
    "POST /api/v1/uploads": Described(
        "reserveUpload",
        "Uploads",
        "Reserve an upload",
        {201: ("Where the bytes go, with one PUT", schemas.ReservationAnswer, {"data": RESERVATION})},
        problems=(409,),
        request={"fileName": "frost.jpg", "mimeType": "image/jpeg", "fileSize": 482113},
    ),
    "POST /api/v1/uploads/complete": Described(
        "completeUpload",
        "Uploads",
        "Complete an upload",
        {200: ("The verified artifact", schemas.ArtifactAnswer, {"data": ARTIFACT})},
        problems=(409,),
        request={"artifactId": ARTIFACT["artifactId"]},
        notes="A file that is not what it was declared to be is rejected: 400 says why, and its bytes are removed.",
    ),
    "GET /api/v1/publish/logs": Described(
        "listLogs",
        "Publishing logs",
        "List publishing logs",
        {200: ("What happened to deliveries, newest first", schemas.LogsAnswer, {"data": [LOG_ENTRY]})},
        notes="`limit` and `offset` also accept an empty value or `null`, which mean the default.",
    ),
}
