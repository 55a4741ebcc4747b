"""What answers look like (spec section 2, contract 1.15): for the OpenAPI document, and for tests that hold every
answer against it. The answers themselves are built by SQLite (`store/views.py`); nothing is read through these.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from socialpub.web.shapes import LEFT_OUT, Shape

Uuid = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
Stamp = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "date-time", "description": "UTC, with milliseconds and Z"}),
]
Uri = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]
Provider = Literal["x", "tiktok", "pinterest"]
Free = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": True})]


def said(description: str) -> Any:
    """A field that is always there."""
    return Field(description=description)


def maybe(description: str) -> Any:
    """A field that is left out when there is no value."""
    return Field(LEFT_OUT, description=description)


class Profile(Shape):
    """A connected social account."""

    id: Uuid = said("Used as a target in `profiles` when a post is created")
    name: str = said("Label that its owner gave it")
    provider: Provider
    status: Literal["active", "reauthRequired", "disconnected"]
    username: str = maybe("Handle at the provider")
    picture_url: Uri = maybe("Avatar")
    expires_at: Stamp = maybe("By when the owner must connect the account again")
    posts_count: int = Field(ge=0, description="Posts ever published through this profile")
    created_at: Stamp = said("When it was connected")
    updated_at: Stamp = said("When it was last refreshed")


class MediaItem(Shape):
    """A file of a post."""

    id: Uuid
    artifact_id: Uuid
    artifact_status: Literal["reserved", "verified", "rejected"] = maybe("State of the artifact")
    content_type: str = maybe("Verified media type")
    url: Uri = maybe("Temporary public read URL, while the file is kept")
    alt: str = maybe("Alternative text")


class Delivery(Shape):
    """A post on its way to one profile."""

    provider: Provider
    profile_name: str = said("Label of the profile at delivery time")
    status: Literal["pending", "published", "failed", "canceled"]
    provider_options: Free = said("Options applied to this delivery")
    profile_id: Uuid = maybe("Target profile")
    scheduled_at: Stamp = maybe("When it was scheduled to run")
    published_at: Stamp = maybe("When it was published")
    failed_at: Stamp = maybe("When it failed")
    provider_post_id: str = maybe("The network's public id of the post")
    url: Uri = maybe("Public URL of the published post")
    error_message: str = maybe(
        "Why it failed and what to do. `Outcome unknown:` at its beginning means that it may be public all the same"
    )


class Post(Shape):
    """What is published, and how far it is."""

    id: Uuid
    status: Literal["pending", "scheduled", "settled", "canceled"]
    created_at: Stamp
    updated_at: Stamp
    media: list[MediaItem]
    deliveries: list[Delivery] = said("One per target profile")
    body: str = maybe("Text")
    scheduled_at: Stamp = maybe("Scheduled publish time")
    canceled_at: Stamp = maybe("When it was canceled")


class Pagination(Shape):
    page: int = Field(ge=0)
    per_page: int = Field(ge=1)
    total: int = Field(ge=0, description="Matching posts on all pages")


class Attempt(Shape):
    """One conversation with a network, or why there is none yet."""

    delivery_id: Uuid
    profile_id: Uuid
    provider: Provider
    step: str
    started_at: Stamp
    ended_at: Stamp = LEFT_OUT
    outcome: Literal["done", "waiting", "held", "retrying", "refused", "unknown", "published"]
    message: str = LEFT_OUT
    provider_code: str = LEFT_OUT
    request_id: str = maybe("The network's own id of its answer")
    next_at: Stamp = maybe("When it goes on")


class FoundProblem(Shape):
    path: list[str | int] = said("The field in the body of POST /posts")
    message: str


class CheckedDelivery(Shape):
    profile_id: Uuid
    provider: Provider
    problems: list[FoundProblem] = said("What the network would refuse; empty when nothing")
    notes: list[str] = maybe("Worth knowing although nothing is wrong")


class Validation(Shape):
    """What each network would say."""

    valid: bool
    deliveries: list[CheckedDelivery]


class Reservation(Shape):
    """Where the bytes of an upload go."""

    artifact_id: Uuid
    upload_url: Uri = said("Presigned target for one PUT of the file's bytes; needs no key")
    required_headers: dict[str, str] = said("Headers that the PUT must carry; names in lower case")


class Artifact(Shape):
    """A verified upload."""

    artifact_id: Uuid
    storage_key: str = said("Opaque")
    url: Uri = said("Temporary public read URL")
    created_at: Stamp = said("When it was verified")
    kind: Literal["image", "video"]
    mime_type: str
    size_bytes: int = Field(ge=0)


class LogEntry(Shape):
    """Something that happened to a delivery."""

    id: Uuid
    delivery_id: Uuid
    post_id: Uuid
    provider: Provider
    type: Literal["pending", "published", "failed", "canceled"]
    occurred_at: Stamp
    post_body: str = LEFT_OUT
    post_scheduled_at: Stamp = LEFT_OUT
    profile_name: str = LEFT_OUT
    release_url: Uri = LEFT_OUT
    provider_post_id: str = LEFT_OUT
    error_message: str = maybe("Only when type is `failed`")


class FailingField(Shape):
    path: list[str | int] = said("Where the field stands in the request; empty for the request as a whole")
    message: str = said("What to change")


class Problem(Shape):
    """Problem details (RFC 7807)."""

    type: Uri = said("A page that says what it means and what to do")
    title: str
    status: int
    detail: str
    code: str = said("Stable: branch on this, not on title or detail")
    errors: list[FailingField] = maybe("On 400: every failing field")


class PostAnswer(Shape):
    data: Post


class PostsAnswer(Shape):
    data: list[Post]
    pagination: Pagination


class AttemptsAnswer(Shape):
    data: list[Attempt]


class ValidationAnswer(Shape):
    data: Validation


class ProfileAnswer(Shape):
    data: Profile


class ProfilesAnswer(Shape):
    data: list[Profile]


class ReservationAnswer(Shape):
    data: Reservation


class ArtifactAnswer(Shape):
    data: Artifact


class LogsAnswer(Shape):
    data: list[LogEntry]
