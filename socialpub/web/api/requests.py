"""The bodies and queries of every endpoint (spec section 4, limits: section 8)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from socialpub.core import ids
from socialpub.core.errors import FieldError
from socialpub.core.upload_limits import MAX_VIDEO_BYTES
from socialpub.core.validation import wrong
from socialpub.media.types import ACCEPTED_TYPES, canonical_type
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing import uploads
from socialpub.web.shapes import (
    LARGEST,
    LEFT_OUT,
    Alt,
    FreeForm,
    Id,
    Ids,
    Instant,
    InstantOrNull,
    Query,
    Shape,
    Trimmed,
    read_instant,
    read_number,
)

MOST_MEDIA = 20

# --- posts -----------------------------------------------------------------------------------------------------------


class ProviderOptions(Shape):
    x: FreeForm = LEFT_OUT
    tiktok: FreeForm = LEFT_OUT
    pinterest: FreeForm = LEFT_OUT

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """What was sent, by provider."""
        return {name: getattr(self, name) for name in PROVIDERS if name in self.model_fields_set}


class MediaReference(Shape):
    artifact_id: Id
    alt: Alt = LEFT_OUT


class PostContent(Shape):
    body: Trimmed = LEFT_OUT
    scheduled_at: Instant = LEFT_OUT


class PostDraft(Shape):
    """The body of `POST /posts` and `POST /posts/validate`."""

    post: PostContent
    profiles: Ids
    media: list[MediaReference] = Field(LEFT_OUT, min_length=1, max_length=MOST_MEDIA)
    provider_options: ProviderOptions = LEFT_OUT

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
    """In a multipart form: a file part by its name, or an artifact that exists already."""

    file_field: Annotated[str, Field(min_length=1)] = LEFT_OUT
    artifact_id: Id = LEFT_OUT
    alt: Alt = LEFT_OUT


class FormDraft(Shape):
    """The `payload` of a multipart `POST /posts`."""

    post: PostContent
    profiles: Ids
    media: list[FormMediaItem] = Field(LEFT_OUT, min_length=1, max_length=MOST_MEDIA)
    provider_options: ProviderOptions = LEFT_OUT

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        errors = list(needs_content(value))
        media = value.get("media") if isinstance(value, dict) else None
        for index, item in enumerate(media if isinstance(media, list) else ()):
            if isinstance(item, dict) and ("fileField" in item) == ("artifactId" in item):
                errors.append(FieldError(("media", index), "needs exactly one of fileField and artifactId"))
        return errors


class ContentChange(Shape):
    body: Trimmed = LEFT_OUT
    scheduled_at: InstantOrNull = LEFT_OUT


class PostChange(Shape):
    """The body of `PATCH /posts/{postId}`."""

    post: ContentChange = LEFT_OUT
    media: list[MediaReference] = Field(LEFT_OUT, max_length=MOST_MEDIA)
    provider_options: ProviderOptions = LEFT_OUT

    @classmethod
    def across(cls, value: Any) -> Sequence[FieldError]:
        if isinstance(value, dict) and (value == {} or value == {"post": {}}):
            return [FieldError((), "give at least one field to change")]
        return ()


# --- uploads ---------------------------------------------------------------------------------------------------------


def check_media_type(value: str) -> str:
    """A type that may be uploaded, as it was written."""
    if canonical_type(value) is None:
        raise wrong(uploads.unaccepted(value))
    return value


class UploadRequest(Shape):
    """The body of `POST /uploads`."""

    file_name: Annotated[str, Field(min_length=1, max_length=255)]
    mime_type: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_media_type)] = Field(
        description=f"One of {', '.join(ACCEPTED_TYPES)}"
    )
    file_size: Annotated[int, Field(gt=0, le=MAX_VIDEO_BYTES)] = Field(
        description="Exactly as many bytes as the PUT will send; images may have at most 32 MiB"
    )


class CompleteRequest(Shape):
    """The body of `POST /uploads/complete`."""

    artifact_id: Id


# --- queries ---------------------------------------------------------------------------------------------------------


def _read_id_list(value: Any) -> list[str]:
    known = [ids.parse(item) for item in value.split(",")]
    if None in known:
        raise wrong("must be a comma-separated list of UUIDs")
    return [item for item in known if item is not None]


def _read_provider_list(value: Any) -> list[str]:
    names: list[str] = value.split(",")
    if not set(names) <= set(PROVIDERS):
        raise wrong(f"must be a comma-separated list of {', '.join(PROVIDERS)}")
    return names


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

    status: Literal["pending", "settled", "canceled", "scheduled"] = LEFT_OUT
    profile_ids: Annotated[
        list[str],
        BeforeValidator(_read_id_list),
        WithJsonSchema({**_COMMA_LIST, "items": {"type": "string", "format": "uuid"}}),
    ] = LEFT_OUT
    providers: Annotated[
        list[str],
        BeforeValidator(_read_provider_list),
        WithJsonSchema({**_COMMA_LIST, "items": {"type": "string", "enum": list(PROVIDERS)}}),
    ] = LEFT_OUT
    scheduled_after: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = LEFT_OUT
    scheduled_before: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = LEFT_OUT
    page: Annotated[int, *_number(0, LARGEST)] = 0
    per_page: Annotated[int, *_number(1, 100)] = 20


class PostQuery(Query):
    wait: Annotated[int, *_number(1, 60)] = LEFT_OUT


class LogsQuery(Query):
    LENIENT = frozenset({"limit", "offset"})

    limit: Annotated[int, *_number(0, 100)] = 50
    offset: Annotated[int, *_number(0, LARGEST)] = 0
