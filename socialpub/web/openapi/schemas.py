"""What answers look like (spec section 2, contract 1.15): for the OpenAPI document, and for tests that hold every
answer against it. The answers themselves are built by SQLite (`db/json_views.py`); nothing is read through these.

`ProfileSchema` is the component `Profile` of the document, and so on.
"""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, create_model

from socialpub.web.api.requests import (
    ArtifactStatus,
    AttemptOutcome,
    DeliveryStatus,
    MediaKind,
    PostStatus,
    ProfileStatus,
    Provider,
)
from socialpub.web.http.shapes import Shape, optional, required

Uuid = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
Stamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""UTC, with milliseconds and Z."""
Uri = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]
Free = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": True})]
Path = Annotated[
    list[str | int], WithJsonSchema({"type": "array", "items": {"type": ["string", "integer"]}})
]  # generators read this better than a choice of two schemas


class ProfileSchema(Shape):
    """A connected social account."""

    id: Uuid = required("Used as a target in `profiles` when a post is created")
    name: str = required("Label that its owner gave it")
    provider: Provider = required("The network of the account")
    status: ProfileStatus = required("Whether it can be used")
    username: str = optional("Handle at the network")
    picture_url: Uri = optional("Avatar, at the network")
    expires_at: Stamp = optional("By when the owner must connect the account again; left out when nobody knows")
    posts_count: int = Field(ge=0, description="Posts ever published through this profile")
    created_at: Stamp = required("When it was connected")
    updated_at: Stamp = required("When it was last refreshed")


class MediaItemSchema(Shape):
    """A file of a post."""

    id: Uuid = required("Unique within the post")
    artifact_id: Uuid = required("The artifact that was uploaded")
    artifact_status: ArtifactStatus = optional("State of the artifact")
    content_type: str = optional("Verified media type, such as `image/jpeg`")
    url: Uri = optional(
        "Where the file can be read for an hour (unless configured otherwise), by a plain GET without a key: use it "
        "unchanged, signature and all. It takes `Range`, and HEAD. Left out once the file was removed. Read the post "
        "again for a fresh one"
    )
    alt: str = optional("Alternative text")


class DeliverySchema(Shape):
    """A post on its way to one profile. It has no id here: the attempts and the log name it by `deliveryId`, and since
    a post has one delivery per profile, `profileId` with `provider` tells which is which."""

    provider: Provider = required("The network that it goes to")
    profile_name: str = required("Label of the profile at delivery time")
    status: DeliveryStatus = required("How far it is")
    provider_options: Free = required(
        "Options applied to this delivery: those of the post over those stored with the profile, as they were written"
    )
    profile_id: Uuid = optional("Target profile; with `provider` it finds this delivery's attempts and log entries")
    scheduled_at: Stamp = optional("When it was scheduled to run")
    published_at: Stamp = optional("When it was published")
    failed_at: Stamp = optional("When it failed")
    provider_post_id: str = optional("The network's public id of the post; some networks tell it later, or never")
    url: Uri = optional("Public URL of the published post")
    error_message: str = optional(
        "Why it failed and what to do. `Outcome unknown:` at its beginning means that it may be public all the same"
    )


class PostSchema(Shape):
    """What is published, and how far it is."""

    id: Uuid = required("Names the post in addresses, and in the log")
    status: PostStatus = required("How far it is as a whole; each delivery has a status of its own")
    created_at: Stamp = required("When it was accepted")
    updated_at: Stamp = required("When it last changed")
    media: list[MediaItemSchema] = required("Its files, in their order; may be empty")
    deliveries: list[DeliverySchema] = required("One per target profile")
    body: str = optional("Text")
    scheduled_at: Stamp = optional("Scheduled publish time")
    canceled_at: Stamp = optional("When it was canceled")


class PaginationSchema(Shape):
    """Where a page stands in the whole list."""

    page: int = Field(ge=0, description="Number of this page; the first one is 0")
    per_page: int = Field(ge=1, description="Posts on a page, at most")
    total: int = Field(ge=0, description="Matching posts on all pages")


class AttemptSchema(Shape):
    """One conversation with a network, or why there is none yet."""

    delivery_id: Uuid = required(
        "The delivery, as log entries name it too. In the post it is the one with this `profileId` and `provider`"
    )
    profile_id: Uuid = required("The delivery's target profile")
    provider: Provider = required("The delivery's network")
    step: str = required("What was asked of the network, such as `create_post`; steps differ from network to network")
    started_at: Stamp = required("When it began")
    ended_at: Stamp = optional("When it ended; left out while it runs")
    outcome: AttemptOutcome = required("How it ended")
    message: str = optional("What the network said, or what is waited for")
    provider_code: str = optional("The network's own code of its answer")
    request_id: str = optional("The network's own id of its answer, for its support")
    next_at: Stamp = optional("When it goes on")


class FoundProblemSchema(Shape):
    """Something that a network would refuse."""

    path: Path = required("The field in the body of `POST /posts`")
    message: str = required("The rule, what was found, and what to change")


class CheckedDeliverySchema(Shape):
    """What the network of one profile would say."""

    profile_id: Uuid = required("Target profile")
    provider: Provider = required("Its network")
    problems: list[FoundProblemSchema] = required("What the network would refuse; empty when nothing")
    notes: list[str] = optional("Worth knowing although nothing is wrong")


class ValidationSchema(Shape):
    """What each network would say."""

    valid: bool = required("`true` when no network has a problem")
    deliveries: list[CheckedDeliverySchema] = required("One per target profile")


class ReservationSchema(Shape):
    """Where the bytes of an upload go."""

    artifact_id: Uuid = required("Names the upload in `POST /uploads/complete`, and later the file in posts")
    upload_url: Uri = required(
        "Where the bytes go, for an hour (unless configured otherwise), with one PUT that needs no key: use it "
        "unchanged, signature and all. The PUT carries `requiredHeaders` and exactly `fileSize` bytes, and is answered "
        "200. It may be repeated until the upload is complete: the last one that arrived whole counts. Refusals are "
        "problems: 400 for fewer bytes or another type than reserved, 403 for a bad or expired signature, 409 after "
        "completion or a rejection and when two PUTs are under way already, 413 for more bytes, 503 when the disk "
        "or the quota for media has no room for it beside what else is on its way (or whoever is very slow has to give "
        "way to others)"
    )
    required_headers: dict[str, str] = required("Headers that the PUT must carry; names in lower case")


class ArtifactSchema(Shape):
    """A verified upload."""

    artifact_id: Uuid = required("Names the file in `media[].artifactId` of a post")
    storage_key: str = required("Opaque")
    url: Uri = required(
        "Where the file can be read for an hour (unless configured otherwise), by a plain GET without a key: use it "
        "unchanged, signature and all"
    )
    created_at: Stamp = required("When it was verified")
    kind: MediaKind = required("What it was found to be")
    mime_type: str = required("Verified media type, such as `image/jpeg`")
    size_bytes: int = Field(ge=0, description="Verified number of bytes")


class LogEntrySchema(Shape):
    """Something that happened to a delivery: `pending` when it was accepted, then one entry with its end."""

    id: Uuid = required("Names this entry")
    delivery_id: Uuid = required(
        "The delivery, as attempts name it too. In the post it is the one with the same profile and `provider`"
    )
    post_id: Uuid = required("The post that it belongs to")
    provider: Provider = required("The delivery's network")
    type: DeliveryStatus = required("What happened: the state that the delivery came to")
    occurred_at: Stamp = required("When it was recorded")
    post_body: str = optional("The post's text at that time")
    post_scheduled_at: Stamp = optional("The post's scheduled time at that time")
    profile_name: str = optional("The profile's label at that time")
    release_url: Uri = optional("Public URL of the published post")
    provider_post_id: str = optional("The network's public id of the post")
    error_message: str = optional("Why it failed; only when `type` is `failed`")


class FailingFieldSchema(Shape):
    """A field of the request that cannot be accepted."""

    path: Path = required("Where the field stands in the request; empty for the request as a whole")
    message: str = required("What to change")


class ProblemSchema(Shape):
    """Why a request failed: problem details as in RFC 7807."""

    type: Uri = required("A page that says what it means and what to do")
    title: str = required("What kind of problem it is, in a few words")
    status: int = required("The HTTP status again")
    detail: str = required("What happened this time, and what to change")
    code: str = required("Stable: branch on this, not on title or detail")
    errors: list[FailingFieldSchema] = optional("On 400: every failing field, at most 100 of them")


def _answer(name: str, words: str, data: Any, meaning: str) -> type[Shape]:
    """Return the shape of an answer that has only `data`."""
    return create_model(name, __base__=Shape, __doc__=words, data=(data, required(meaning)))


PostAnswer = _answer("PostAnswer", "A post.", PostSchema, "The post")


class PostsAnswer(Shape):
    """A page of posts."""

    data: list[PostSchema] = required("The posts of this page, newest first; empty beyond the last page")
    pagination: PaginationSchema = required("Where this page stands")


AttemptsAnswer = _answer(
    "AttemptsAnswer",
    "The attempts of a post.",
    list[AttemptSchema],
    "The attempts of all its deliveries, oldest first",
)
ValidationAnswer = _answer(
    "ValidationAnswer", "What each network would say about a post.", ValidationSchema, "What each network would say"
)
ProfileAnswer = _answer("ProfileAnswer", "A profile.", ProfileSchema, "The profile")
ProfilesAnswer = _answer(
    "ProfilesAnswer", "Profiles.", list[ProfileSchema], "Every profile that the key can see, oldest first"
)
ReservationAnswer = _answer("ReservationAnswer", "A reservation.", ReservationSchema, "Where the bytes go")
ArtifactAnswer = _answer("ArtifactAnswer", "A verified upload.", ArtifactSchema, "The artifact, ready for posts")
LogsAnswer = _answer("LogsAnswer", "Entries of the publishing log.", list[LogEntrySchema], "The entries, newest first")
