"""The shapes of responses (spec section 2, contract 1.15), for the OpenAPI document and the tests.

SQLite builds the responses; no response is built or parsed with these shapes. `ProfileSchema` is the component
`Profile` of the document.
"""

from typing import Annotated, Any, Literal

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
AnyValue = Annotated[Any, WithJsonSchema({})]
"""A value of any JSON type. Generated clients lose the fields of a schema with a union."""
Free = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": True})]
Path = Annotated[list[str | int], WithJsonSchema({"type": "array", "items": {}})]
"""Names and indexes. Generators handle any value better than a choice of two types."""

_READ_URL = (
    "Where to read the file, with a GET request and without a key. The URL is signed: use it unchanged. It is valid "
    "for one hour, unless the owner configured another time"
)


class ProfileSchema(Shape):
    """A connected social account."""

    id: Uuid = required("The target of a post: an item of `profiles` in `POST /posts`")
    name: str = required("The label that the owner gave the profile")
    provider: Provider = required("The network of the account")
    status: ProfileStatus = required("Whether the account can be used")
    username: str = optional("The account's username on the network")
    picture_url: Uri = optional("The account's profile picture, hosted by the network")
    expires_at: Stamp = optional("When the owner must connect the account again, at the latest. Omitted if unknown")
    posts_count: int = Field(ge=0, description="Number of posts published through this profile")
    created_at: Stamp = required("When the account was connected")
    updated_at: Stamp = required("When the account data was last refreshed")


class MediaItemSchema(Shape):
    """A media file of a post."""

    id: Uuid = required("The media item, unique within the post")
    artifact_id: Uuid = required("The uploaded artifact")
    artifact_status: ArtifactStatus = optional("The state of the artifact")
    content_type: str = optional("The verified media type, such as `image/jpeg`")
    url: Uri = optional(
        f"{_READ_URL}. The URL also supports HEAD and `Range`. Omitted if the file was removed. Read the post again to "
        "get a new URL"
    )
    alt: str = optional("The alternative text")


class DeliverySchema(Shape):
    """The delivery of a post to one profile. Attempts and log entries refer to the delivery by `deliveryId`. A post has
    one delivery per profile, so `profileId` and `provider` identify the delivery inside the post.
    """

    provider: Provider = required("The network of the target profile")
    profile_name: str = required("The label of the profile at delivery time")
    status: DeliveryStatus = required("The status of the delivery")
    provider_options: Free = required(
        "The options of this delivery, with keys as they were written. Options of the post override the defaults "
        "stored with the profile"
    )
    profile_id: Uuid = optional("The target profile. With `provider`, it identifies the attempts of this delivery")
    scheduled_at: Stamp = optional("The scheduled time")
    published_at: Stamp = optional("When the delivery was published")
    failed_at: Stamp = optional("When the delivery failed")
    provider_post_id: str = optional("The network's public id of the post. Some networks report it later, or never")
    url: Uri = optional("The public URL of the published post")
    error_message: str = optional(
        "Why the delivery failed, and what to do. If the message begins with `Outcome unknown:`, the post may be public"
    )


class PostSchema(Shape):
    """A post and the state of its deliveries."""

    id: Uuid = required("The post, in paths and in the publishing log")
    status: PostStatus = required("The status of the whole post. Each delivery has its own status")
    created_at: Stamp = required("When the post was accepted")
    updated_at: Stamp = required("When the post last changed")
    media: list[MediaItemSchema] = required("The media files in their order. May be empty")
    deliveries: list[DeliverySchema] = required("One delivery per target profile")
    body: str = optional("The text")
    scheduled_at: Stamp = optional("The scheduled time")
    canceled_at: Stamp = optional("When the post was canceled")


class PaginationSchema(Shape):
    """The position of a page in the list."""

    page: int = Field(ge=0, description="The number of this page. The first page is 0")
    per_page: int = Field(ge=1, description="The maximum number of posts on a page")
    total: int = Field(ge=0, description="The number of matching posts on all pages")


class AttemptSchema(Shape):
    """One step of a delivery at a network, or the reason why the delivery waits."""

    delivery_id: Uuid = required(
        "The delivery. Log entries have the same id. In the post, `profileId` and `provider` identify the delivery"
    )
    profile_id: Uuid = required("The target profile of the delivery")
    provider: Provider = required("The network of the delivery")
    step: str = required("The step, such as `create_post`. Each network has its own steps")
    started_at: Stamp = required("When the attempt started")
    ended_at: Stamp = optional("When the attempt ended. Omitted while the attempt runs")
    outcome: AttemptOutcome = required("The outcome of the attempt")
    message: str = optional("The network's message, or what the delivery waits for")
    provider_code: str = optional("The error or status code in the network's response")
    request_id: str = optional("The network's request id, for its support")
    next_at: Stamp = optional("When the delivery continues")


class FoundProblemSchema(Shape):
    """A reason for a network to refuse the post."""

    path: Path = required("The field in the body of `POST /posts`")
    message: str = required("The rule, the value found, and what to change")


class CheckedDeliverySchema(Shape):
    """The check of one delivery."""

    profile_id: Uuid = required("The target profile")
    provider: Provider = required("The network of the profile")
    problems: list[FoundProblemSchema] = required("What the network would refuse. Empty if there is no problem")
    notes: list[str] = optional("Hints that do not prevent publishing")


class ValidationSchema(Shape):
    """The checks of all deliveries of a post."""

    valid: bool = required("`true` if no delivery has a problem")
    deliveries: list[CheckedDeliverySchema] = required("One check per target profile")


class ReservationSchema(Shape):
    """A reserved upload."""

    artifact_id: Uuid = required("The upload in `POST /uploads/complete`, and later the file in posts")
    upload_url: Uri = required(
        "The URL for one PUT request with `requiredHeaders` and exactly `fileSize` bytes. It is signed, needs no key, "
        "and expires: use it unchanged. Success is 200. 400: another size or type. 403: expired. 409: complete. "
        "413: too many bytes. 503: no space. The PUT may be repeated"
    )
    required_headers: dict[str, str] = required("The headers that the PUT request needs, with names in lower case")


class ArtifactSchema(Shape):
    """A verified upload."""

    artifact_id: Uuid = required("The file, for `media[].artifactId` of a post")
    storage_key: str = required("An opaque key of the file in storage")
    url: Uri = required(_READ_URL)
    created_at: Stamp = required("When the upload was verified")
    kind: MediaKind = required("The kind of media that the bytes contain")
    mime_type: str = required("The verified media type, such as `image/jpeg`")
    size_bytes: int = Field(ge=0, description="The verified size in bytes")


class LogEntrySchema(Shape):
    """An event of a delivery. Each delivery has an entry `pending` when it is accepted, then one entry when it ends."""

    id: Uuid = required("The log entry")
    delivery_id: Uuid = required(
        "The delivery. Attempts have the same id. In the post, the profile and `provider` identify the delivery"
    )
    post_id: Uuid = required("The post of the delivery")
    provider: Provider = required("The network of the delivery")
    type: DeliveryStatus = required("The new status of the delivery")
    occurred_at: Stamp = required("When the event was recorded")
    post_body: str = optional("The text of the post at that time")
    post_scheduled_at: Stamp = optional("The scheduled time of the post at that time")
    profile_name: str = optional("The label of the profile at that time")
    release_url: Uri = optional("The public URL of the published post")
    provider_post_id: str = optional("The network's public id of the post")
    error_message: str = optional("Why the delivery failed. Only if `type` is `failed`")


class OptionValueSchema(Shape):
    """A value of an option."""

    value: AnyValue = required("The value to send")
    label: str = required("The network's or socialpub's words for the value")


class OptionSchema(Shape):
    """An option of a post, with the values that the account can choose now."""

    key: str = required("The key in `providerOptions`")
    is_required: bool = Field(
        alias="required", description="Whether a post needs a value: from the post itself, or from `stored`"
    )
    type: Literal["boolean", "integer", "string", "array"] = required(
        "The JSON type of a value: `boolean`, `integer`, `string` or `array`"
    )
    description: str = required("What the option does")
    default: AnyValue = optional("The value that applies if neither the post nor the profile has one")
    stored: AnyValue = optional("The default that the owner stored with the profile")
    values: list[OptionValueSchema] = optional(
        "The values to choose from, at most 1,000. If omitted, any value of the type can be valid"
    )


class ChoicesSchema(Shape):
    """What a post can choose for an account."""

    profile_id: Uuid = required("The profile")
    provider: Provider = required("The network of the account")
    options: list[OptionSchema] = required("Every option of the network")
    notes: list[str] = optional("What else the account allows, and why values are missing")


class FailingFieldSchema(Shape):
    """A field of the request that is not valid."""

    path: Path = required("The path of the field in the request. Empty for the whole request")
    message: str = required("What is wrong, and what to change")


class ProblemSchema(Shape):
    """The reason why a request failed, as problem details (RFC 7807)."""

    type: Uri = required("A page that explains this kind of problem and what to do")
    title: str = required("The kind of problem, in a few words")
    status: int = required("The HTTP status code")
    detail: str = required("What happened in this request, and what to change")
    code: str = required("A stable code. Branch on this field, not on `title` or `detail`")
    errors: list[FailingFieldSchema] = optional("On 400, every failing field, at most 100")


def _answer(name: str, words: str, data: Any, meaning: str) -> type[Shape]:
    """Return the shape of an answer that has only `data`."""
    return create_model(name, __base__=Shape, __doc__=words, data=(data, required(meaning)))


PostAnswer = _answer("PostAnswer", "A post.", PostSchema, "The post")


class PostsAnswer(Shape):
    """A page of posts."""

    data: list[PostSchema] = required("The posts of this page, newest first. Empty after the last page")
    pagination: PaginationSchema = required("The position of this page in the list")


AttemptsAnswer = _answer(
    "AttemptsAnswer", "The attempts of a post.", list[AttemptSchema], "The attempts of all deliveries, oldest first"
)
ValidationAnswer = _answer("ValidationAnswer", "The check of a post.", ValidationSchema, "The check of each delivery")
ProfileAnswer = _answer("ProfileAnswer", "A profile.", ProfileSchema, "The profile")
ProfilesAnswer = _answer(
    "ProfilesAnswer", "Profiles.", list[ProfileSchema], "Every profile in the scope of the key, oldest first"
)
ChoicesAnswer = _answer("ChoicesAnswer", "The choices of an account.", ChoicesSchema, "The choices")
ReservationAnswer = _answer("ReservationAnswer", "A reserved upload.", ReservationSchema, "The reservation")
ArtifactAnswer = _answer("ArtifactAnswer", "A verified upload.", ArtifactSchema, "The artifact, ready for posts")
LogsAnswer = _answer("LogsAnswer", "Entries of the publishing log.", list[LogEntrySchema], "The entries, newest first")
