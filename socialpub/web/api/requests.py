"""The bodies and queries of every endpoint (spec section 4, limits: section 8)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from socialpub.core import ids, units
from socialpub.core.errors import FieldError
from socialpub.core.units import MAX_VIDEO_BYTES
from socialpub.core.validation import AlsoCalled, Keys, wrong
from socialpub.media.types import ACCEPTED_TYPES, canonical_type
from socialpub.providers import registry
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing.media import uploads
from socialpub.web.api.enumerations import DeliveryOutcome, PostStatus, Provider
from socialpub.web.http.shapes import (
    LARGEST,
    LEFT_OUT,
    WHERE_IDS_ARE,
    Alt,
    FreeForm,
    Id,
    Ids,
    Instant,
    InstantOrNull,
    Query,
    Shape,
    Trimmed,
    optional,
    read_flag,
    read_instant,
    read_number,
    required,
)

MAX_MEDIA = 20

ALT = "Alternative text, strongly recommended for images"
CONTENT = "Text and time"
MEDIA = "Files in their order. Needed when there is no `post.body`"
OPTIONS = "Options by network, such as Pinterest's `boardId`"
PROFILES = "Where it goes: ids from `GET /profiles`, each once"

# --- posts -----------------------------------------------------------------------------------------------------------


def _known_keys(provider: str) -> Keys:
    return Keys(tuple(option.name for option in registry.OPTIONS[provider]))


class ProviderOptions(Shape):
    """What goes beyond text and media, by network; only networks of the chosen profiles. A post's own keys win over
    those stored with the profile."""

    x: Annotated[FreeForm, _known_keys("x"), AlsoCalled(("twitter",))] = optional("Options for X")
    tiktok: Annotated[FreeForm, _known_keys("tiktok")] = optional("Options for TikTok")
    pinterest: Annotated[FreeForm, _known_keys("pinterest")] = optional("Options for Pinterest")

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """What was sent, by provider."""
        return {name: getattr(self, name) for name in PROVIDERS if name in self.model_fields_set}


class MediaReference(Shape):
    """A file of a post, by the artifact that was uploaded."""

    artifact_id: Id = required("A verified upload, as `POST /uploads/complete` names it")
    alt: Alt = optional(ALT)


_TEXT = AlsoCalled(("text", "content", "caption", "message"))
_TIME = AlsoCalled(("publishAt", "scheduleAt", "scheduledTime", "date", "time", "when"))
_LENGTH = ("limit", "pageSize", "perPage", "size", "count")


class PostContent(Shape):
    """Text and time."""

    body: Annotated[Trimmed, _TEXT] = optional("Text, without white space around it. Needed when there is no media")
    scheduled_at: Annotated[Instant, _TIME] = optional(
        "When to publish, in the future and with an offset. Left out, it is published now"
    )


class PostDraft(Shape):
    """A post to be made, of uploaded media. It has `post.body`, `media`, or both."""

    post: PostContent = required(CONTENT)
    profiles: Ids = required(PROFILES)
    media: list[MediaReference] = Field(LEFT_OUT, min_length=1, max_length=MAX_MEDIA, description=MEDIA)
    provider_options: ProviderOptions = optional(OPTIONS)

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        return needs_content(value)


def needs_content(value: Any) -> Sequence[FieldError]:
    """A post has a body, media, or both."""
    if isinstance(value, dict) and "media" not in value:
        post = value.get("post")
        if isinstance(post, dict) and "body" not in post:
            return [FieldError(("post", "body"), "is required when there is no media")]
    return ()


class FormMediaItem(Shape):
    """A file of a post in a multipart form: a file part, or an artifact that exists already. Exactly one of `fileField`
    and `artifactId`."""

    file_field: Annotated[str, Field(min_length=1)] = optional("The name of the form's part that holds the file")
    artifact_id: Id = optional("A verified upload, in place of a part")
    alt: Alt = optional(ALT)


class FormDraft(Shape):
    """A post to be made, of files in the same form. It has `post.body`, `media`, or both."""

    post: PostContent = required(CONTENT)
    profiles: Ids = required(PROFILES)
    media: list[FormMediaItem] = Field(LEFT_OUT, min_length=1, max_length=MAX_MEDIA, description=MEDIA)
    provider_options: ProviderOptions = optional(OPTIONS)

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        errors = list(needs_content(value))
        media = value.get("media") if isinstance(value, dict) else None
        for index, item in enumerate(media[:MAX_MEDIA] if isinstance(media, list) else ()):
            if isinstance(item, dict) and ("fileField" in item) == ("artifactId" in item):
                errors.append(FieldError(("media", index), "needs exactly one of fileField and artifactId"))
        return errors


class ContentChange(Shape):
    """Text and time to change."""

    body: Annotated[Trimmed, _TEXT] = optional("The new text")
    scheduled_at: Annotated[InstantOrNull, _TIME] = optional(
        "The new time, in the future and with an offset; `null` publishes at once"
    )


class PostChange(Shape):
    """What to change about a scheduled post: at least one field. Sending a present value again is fine."""

    # In words alone the document could not say that {} is refused; that {"post": {}} is too, it says in words.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    post: ContentChange = optional(CONTENT)
    media: list[MediaReference] = Field(
        LEFT_OUT,
        max_length=MAX_MEDIA,
        description="The media instead of the present ones; may be empty if a body remains",
    )
    provider_options: ProviderOptions = optional("The options instead of all present ones of the post")

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        if isinstance(value, dict) and (value == {} or value == {"post": {}}):
            return [FieldError((), "has nothing to change; give at least one field")]
        return ()


class RetryRequest(Shape):
    """What of a post is published again."""

    include_unknown: bool = Field(
        False,
        description="Also where the outcome is unknown (`Outcome unknown:`): it may be public already and appear twice",
    )


# --- uploads ---------------------------------------------------------------------------------------------------------


def check_media_type(value: str) -> str:
    """A type that may be uploaded, as it was written."""
    if canonical_type(value) is None:
        raise wrong(uploads.unaccepted(value))
    return value


def check_file_size(value: int) -> int:
    if value > MAX_VIDEO_BYTES:
        raise wrong(f"must be at most {units.size(MAX_VIDEO_BYTES)}")
    return value


_FILE_SIZE = WithJsonSchema({"type": "integer", "exclusiveMinimum": 0, "maximum": MAX_VIDEO_BYTES})


class UploadRequest(Shape):
    """A file to be uploaded."""

    file_name: Annotated[str, Field(min_length=1, max_length=255)] = required("Its own name, with the extension")
    mime_type: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_media_type)] = required(
        f"One of {', '.join(f'`{name}`' for name in ACCEPTED_TYPES)}; `image/jpg` is taken for `image/jpeg`"
    )
    file_size: Annotated[int, Field(gt=0), AfterValidator(check_file_size), _FILE_SIZE] = required(
        "Exactly as many bytes as the PUT will send; images may have at most 32 MiB"
    )


class CompleteRequest(Shape):
    """An upload whose bytes were sent."""

    artifact_id: Id = required("As the reservation names it")


# --- queries ---------------------------------------------------------------------------------------------------------


def _read_id_list(value: Any) -> list[str]:
    known = [ids.parse(item) for item in value.split(",")]
    if None in known:
        raise wrong(f"must be a comma-separated list of UUIDs; {WHERE_IDS_ARE}")
    return [item for item in known if item is not None]


def _read_provider_list(value: Any) -> list[str]:
    names: list[str] = value.split(",")
    if not set(names) <= set(PROVIDERS):
        raise wrong(f"must be a comma-separated list of {', '.join(PROVIDERS)}")
    return names


def _states(own: TypeAliasType, other: TypeAliasType, advice: str) -> BeforeValidator:
    """Refuse a state that only something else has, and say which parameter takes it."""
    states, others = (get_args(get_args(alias.__value__)[0]) for alias in (own, other))

    def check(value: Any) -> Any:
        if value in others and value not in states:
            raise wrong(f"must be one of {', '.join(states)}; {advice}={value}")
        return value

    return BeforeValidator(check)


def _read_instant_in_query(value: Any) -> Any:
    # An unescaped + in a query means a space; where the offset begins nothing else can have been meant.
    return read_instant(value[:-6] + "+" + value[-5:] if value[-6:-5] == " " else value)


def _number(lowest: int, highest: int, **more: Any) -> Any:
    schema = {"type": "integer", "minimum": lowest, "maximum": highest, **more}
    return BeforeValidator(read_number), Field(ge=lowest, le=highest), WithJsonSchema(schema)


_COMMA_LIST = {"type": "array", "minItems": 1}
_INSTANT = WithJsonSchema({"type": "string", "format": "date-time"})


class PostsQuery(Query):
    LENIENT = frozenset({"page", "perPage"})

    status: Annotated[
        PostStatus, _states(PostStatus, DeliveryOutcome, "for the outcome of a delivery, use deliveryStatus")
    ] = optional("Only posts with this status")
    delivery_status: Annotated[
        DeliveryOutcome, _states(DeliveryOutcome, PostStatus, "for the status of a post, use status")
    ] = optional(
        "Only posts with such a delivery; together with `profileIds` or `providers` one delivery must match all"
    )
    profile_ids: Annotated[
        list[str],
        BeforeValidator(_read_id_list),
        WithJsonSchema({**_COMMA_LIST, "items": {"type": "string", "format": "uuid"}}),
    ] = optional(
        "Only posts to one of these profiles, separated by commas. Together with `providers` one delivery must match "
        "both"
    )
    providers: Annotated[
        list[Provider],
        BeforeValidator(_read_provider_list),
        Field(min_length=1),
    ] = optional("Only posts to one of these networks, separated by commas")
    scheduled_after: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = optional(
        "Only posts that are or were scheduled for this time or later; with an offset"
    )
    scheduled_before: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = optional(
        "Only posts that are or were scheduled for this time or earlier; with an offset"
    )
    page: Annotated[int, *_number(0, LARGEST)] = Field(0, description="Which page: pages are counted from 0")
    per_page: Annotated[int, *_number(1, 100), AlsoCalled(_LENGTH)] = Field(20, description="Posts on a page, at most")


class CreateQuery(Query):
    """How a post is accepted."""

    strict: Annotated[bool, BeforeValidator(read_flag), WithJsonSchema({"type": "boolean"})] = Field(
        False,
        description="`true`: what a network would refuse (`problems` of `POST /posts/validate`) is a 400 with the same "
        "paths and messages, and the post is not accepted",
    )


class PostQuery(Query):
    wait: Annotated[int, *_number(1, 60)] = optional(
        "Seconds to wait for the post to be settled or canceled. Left out, the answer comes at once"
    )


class LogsQuery(Query):
    LENIENT = frozenset({"limit", "offset"})

    limit: Annotated[int, *_number(0, 100), AlsoCalled(_LENGTH)] = Field(
        50, description="Entries in the answer, at most"
    )
    offset: Annotated[int, *_number(0, LARGEST)] = Field(
        0, description="Entries to leave out at the beginning: 0 begins with the newest"
    )
