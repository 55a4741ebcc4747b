"""What answers look like (spec section 2, contract 1.15): for the OpenAPI document, and for tests that hold every
answer against it. The answers themselves are built by SQLite (`db/json_views.py`); nothing is read through these.

`ProfileSchema` is the component `Profile` of the document, and so on.
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


def required(description: str) -> Any:
    """A field that is always there."""
    return Field(description=description)


def optional(description: str) -> Any:
    """A field that is left out when there is no value."""
    return Field(LEFT_OUT, description=description)


class ProfileSchema(Shape):
    """A connected social account."""

    id: Uuid = required("Used as a target in `profiles` when a post is created")
    name: str = required("Label that its owner gave it")
    provider: Provider
    status: Literal["active", "reauthRequired", "disconnected"]
    username: str = optional("Handle at the provider")
    picture_url: Uri = optional("Avatar")
    expires_at: Stamp = optional("By when the owner must connect the account again")
    posts_count: int = Field(ge=0, description="Posts ever published through this profile")
    created_at: Stamp = required("When it was connected")
    updated_at: Stamp = required("When it was last refreshed")


class MediaItemSchema(Shape):
    """A file of a post."""

    id: Uuid
    artifact_id: Uuid
    artifact_status: Literal["reserved", "verified", "rejected"] = optional("State of the artifact")
    content_type: str = optional("Verified media type")
    url: Uri = optional("Temporary public read URL, while the file is kept")
    alt: str = optional("Alternative text")


class DeliverySchema(Shape):
    """A post on its way to one profile."""

    provider: Provider
    profile_name: str = required("Label of the profile at delivery time")
    status: Literal["pending", "published", "failed", "canceled"]
    provider_options: Free = required("Options applied to this delivery")
    profile_id: Uuid = optional("Target profile")
    scheduled_at: Stamp = optional("When it was scheduled to run")
    published_at: Stamp = optional("When it was published")
    failed_at: Stamp = optional("When it failed")
    provider_post_id: str = optional("The network's public id of the post")
    url: Uri = optional("Public URL of the published post")
    error_message: str = optional(
        "Why it failed and what to do. `Outcome unknown:` at its beginning means that it may be public all the same"
    )


class PostSchema(Shape):
    """What is published, and how far it is."""

    id: Uuid
    status: Literal["pending", "scheduled", "settled", "canceled"]
    created_at: Stamp
    updated_at: Stamp
    media: list[MediaItemSchema]
    deliveries: list[DeliverySchema] = required("One per target profile")
    body: str = optional("Text")
    scheduled_at: Stamp = optional("Scheduled publish time")
    canceled_at: Stamp = optional("When it was canceled")


class PaginationSchema(Shape):
    page: int = Field(ge=0)
    per_page: int = Field(ge=1)
    total: int = Field(ge=0, description="Matching posts on all pages")


class AttemptSchema(Shape):
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
    request_id: str = optional("The network's own id of its answer")
    next_at: Stamp = optional("When it goes on")


class FoundProblemSchema(Shape):
    path: list[str | int] = required("The field in the body of POST /posts")
    message: str


class CheckedDeliverySchema(Shape):
    profile_id: Uuid
    provider: Provider
    problems: list[FoundProblemSchema] = required("What the network would refuse; empty when nothing")
    notes: list[str] = optional("Worth knowing although nothing is wrong")


class ValidationSchema(Shape):
    """What each network would say."""

    valid: bool
    deliveries: list[CheckedDeliverySchema]


class ReservationSchema(Shape):
    """Where the bytes of an upload go."""

    artifact_id: Uuid
    upload_url: Uri = required("Presigned target for one PUT of the file's bytes; needs no key")
    required_headers: dict[str, str] = required("Headers that the PUT must carry; names in lower case")


class ArtifactSchema(Shape):
    """A verified upload."""

    artifact_id: Uuid
    storage_key: str = required("Opaque")
    url: Uri = required("Temporary public read URL")
    created_at: Stamp = required("When it was verified")
    kind: Literal["image", "video"]
    mime_type: str
    size_bytes: int = Field(ge=0)


class LogEntrySchema(Shape):
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
    error_message: str = optional("Only when type is `failed`")


class FailingFieldSchema(Shape):
    path: list[str | int] = required("Where the field stands in the request; empty for the request as a whole")
    message: str = required("What to change")


class ProblemSchema(Shape):
    """Problem details (RFC 7807)."""

    type: Uri = required("A page that says what it means and what to do")
    title: str
    status: int
    detail: str
    code: str = required("Stable: branch on this, not on title or detail")
    errors: list[FailingFieldSchema] = optional("On 400: every failing field")


class PostAnswer(Shape):
    data: PostSchema


class PostsAnswer(Shape):
    data: list[PostSchema]
    pagination: PaginationSchema


class AttemptsAnswer(Shape):
    data: list[AttemptSchema]


class ValidationAnswer(Shape):
    data: ValidationSchema


class ProfileAnswer(Shape):
    data: ProfileSchema


class ProfilesAnswer(Shape):
    data: list[ProfileSchema]


class ReservationAnswer(Shape):
    data: ReservationSchema


class ArtifactAnswer(Shape):
    data: ArtifactSchema


class LogsAnswer(Shape):
    data: list[LogEntrySchema]
