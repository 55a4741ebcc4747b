"""The enumerations of the API, the query of every endpoint, and the bodies that are not posts (spec section 4)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import httpx2
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from socialpub.core import units
from socialpub.core.clock import parse_id
from socialpub.core.units import MAX_VIDEO_BYTES
from socialpub.core.validation import AlsoCalled, field_error
from socialpub.media.types import ACCEPTED_TYPES, canonical_type
from socialpub.providers.registry import SPECIFIED
from socialpub.publishing.media import uploads
from socialpub.publishing.media.download import explain_refusal
from socialpub.web.http.shapes import (
    IDS_HINT,
    MAX_NUMBER,
    Id,
    Query,
    Shape,
    optional,
    read_flag,
    read_instant,
    read_number,
    required,
)

# --- enumerations: each is a component of the OpenAPI document, so that generators make one type of it ----------------

Provider = TypeAliasType(
    "Provider",
    Annotated[
        Literal["x", "tiktok", "pinterest"],
        Field(description="A network: `x` is X, `tiktok` is TikTok, `pinterest` is Pinterest."),
    ],
)

ProfileStatus = TypeAliasType(
    "ProfileStatus",
    Annotated[
        Literal["active", "reauthRequired", "disconnected"],
        Field(
            description="`active`: the profile can be used. `reauthRequired`: the network refuses the tokens. The "
            "owner must connect the same account again. Due deliveries wait for the reconnection. `disconnected`: "
            "permanent; "
            "nothing is sent."
        ),
    ],
)

PostStatus = TypeAliasType(
    "PostStatus",
    Annotated[
        Literal["pending", "settled", "canceled", "scheduled"],
        Field(
            description="`pending`: the post is accepted, and some deliveries do not have an outcome yet. `settled`: "
            "every "
            "delivery has an outcome. `canceled`: the post was canceled before any delivery started. `scheduled`: the "
            "post waits for its scheduled time and can be changed or canceled."
        ),
    ],
)

DeliveryStatus = TypeAliasType(
    "DeliveryStatus",
    Annotated[
        Literal["pending", "published", "failed", "canceled"],
        Field(
            description="`pending`: no outcome yet; the attempts say why. `published`: exactly one post is public. "
            "`failed`: nothing was published, and `errorMessage` says what to change. If it begins with `Outcome "
            "unknown:`, the post may be public. `canceled`: the post was canceled."
        ),
    ],
)

DeliveryOutcome = TypeAliasType(
    "DeliveryOutcome",
    Annotated[
        Literal["pending", "published", "failed", "unknown", "canceled"],
        Field(
            description="The outcome of a delivery, as a filter for lists of posts. `pending`: no outcome yet. "
            "`published`: exactly one post is public. `failed`: nothing was published. `unknown`: the delivery failed "
            "with `Outcome unknown:` and may be public. `canceled`: the post was canceled."
        ),
    ],
)

ArtifactStatus = TypeAliasType(
    "ArtifactStatus",
    Annotated[
        Literal["reserved", "verified", "rejected"],
        Field(
            description="`reserved`: the upload is not complete yet. `verified`: posts can use the file. `rejected`: "
            "the file was refused, and its bytes were removed."
        ),
    ],
)

MediaKind = TypeAliasType(
    "MediaKind",
    Annotated[
        Literal["image", "video"],
        Field(description="The kind of media that the bytes contain: `image` (including animated images) or `video`."),
    ],
)

AttemptOutcome = TypeAliasType(
    "AttemptOutcome",
    Annotated[
        Literal["done", "waiting", "held", "retrying", "refused", "unknown", "published"],
        Field(
            description="`done`: the next step follows. `waiting`: the network needs time, until `nextAt`. `held`: "
            "someone must act, as `message` says. `retrying`: a temporary failure, with the next try at `nextAt`. "
            "`refused`: the network refused. `unknown`: the call was cut off. `published`: the post is public."
        ),
    ],
)


_LENGTH = ("limit", "pageSize", "perPage", "size", "count")


class RetryRequest(Shape):
    """The deliveries of a post to retry."""

    include_unknown: bool = Field(
        False,
        description="Also retry deliveries with an unknown outcome (`Outcome unknown:`). They may then appear twice",
    )


# --- uploads ---------------------------------------------------------------------------------------------------------


def check_media_type(value: str) -> str:
    if canonical_type(value) is None:
        raise field_error(uploads.explain_unaccepted(value))
    return value


def check_file_size(value: int) -> int:
    if value > MAX_VIDEO_BYTES:
        raise field_error(f"must be at most {units.size(MAX_VIDEO_BYTES)}")
    return value


_FILE_SIZE = WithJsonSchema({"type": "integer", "exclusiveMinimum": 0, "maximum": MAX_VIDEO_BYTES})


class UploadRequest(Shape):
    """The file to upload."""

    file_name: Annotated[str, Field(min_length=1, max_length=255)] = required(
        "The name of the file, with its extension"
    )
    mime_type: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_media_type)] = required(
        f"One of {', '.join(f'`{name}`' for name in ACCEPTED_TYPES)}. Other names of these types, such as "
        "`image/jpg` and `video/x-m4v`, are accepted, and parameters are ignored"
    )
    file_size: Annotated[int, Field(gt=0), AfterValidator(check_file_size), _FILE_SIZE] = required(
        "The exact number of bytes that the PUT request will send. Images may have at most 32 MiB"
    )


class CompleteRequest(Shape):
    """The upload to complete."""

    artifact_id: Id = required("The `artifactId` of the reservation")


MAX_URL = 2048


def check_media_url(value: str) -> str:
    try:
        fault = explain_refusal(httpx2.URL(value))
    except httpx2.InvalidURL:
        fault = "is not a valid URL"
    if fault is not None:
        raise field_error(fault)
    return value


MediaUrl = Annotated[
    str,
    Field(min_length=1, max_length=MAX_URL),
    AfterValidator(check_media_url),
    WithJsonSchema({"type": "string", "format": "uri", "minLength": 1, "maxLength": MAX_URL}),
]


class ImportRequest(Shape):
    """The file to fetch."""

    url: MediaUrl = required(
        "The http or https URL of the file itself, without a user name. The bytes decide the type of the file"
    )


# --- queries ---------------------------------------------------------------------------------------------------------


def _read_id_list(value: Any) -> list[str]:
    ids = [parse_id(item.strip()) for item in value.split(",")]
    if None in ids:
        raise field_error(f"must be a comma-separated list of UUIDs; {IDS_HINT}")
    return [item for item in ids if item is not None]


def _provider_list(known: Sequence[str]) -> BeforeValidator:
    def read(value: Any) -> list[str]:
        names = [item.strip() for item in value.split(",")]
        if not set(names) <= set(known):
            raise field_error(f"must be a comma-separated list of {', '.join(known)}")
        return names

    return BeforeValidator(read)


def _states(own: TypeAliasType, other: TypeAliasType, advice: str) -> BeforeValidator:
    """Refuse a value of `other`, and report the parameter that accepts the value."""
    states, others = (get_args(get_args(alias.__value__)[0]) for alias in (own, other))

    def check(value: Any) -> Any:
        if value in others and value not in states:
            raise field_error(f"must be one of {', '.join(states)}; {advice}={value}")
        return value

    return BeforeValidator(check)


def _read_instant_in_query(value: Any) -> Any:
    # An unescaped + in a query means a space. At the beginning of the offset it can only mean the plus sign.
    return read_instant(value[:-6] + "+" + value[-5:] if value[-6:-5] == " " else value)


def _number(lowest: int, highest: int, **more: Any) -> Any:
    schema = {"type": "integer", "minimum": lowest, "maximum": highest, **more}
    return BeforeValidator(read_number), Field(ge=lowest, le=highest), WithJsonSchema(schema)


_COMMA_LIST = {"type": "array", "minItems": 1}
_INSTANT = WithJsonSchema({"type": "string", "format": "date-time"})


class PostsQuery(Query):
    NULLABLE = frozenset({"page", "perPage"})
    LISTS = frozenset({"profileIds", "providers"})

    status: Annotated[
        PostStatus, _states(PostStatus, DeliveryOutcome, "for the outcome of a delivery, use deliveryStatus")
    ] = optional("Only posts with this status")
    delivery_status: Annotated[
        DeliveryOutcome, _states(DeliveryOutcome, PostStatus, "for the status of a post, use status")
    ] = optional(
        "Only posts with at least one such delivery. With `profileIds` or `providers`, one delivery must match all"
    )
    profile_ids: Annotated[
        list[str],
        BeforeValidator(_read_id_list),
        WithJsonSchema({**_COMMA_LIST, "items": {"type": "string", "format": "uuid"}}),
    ] = optional(
        "Only posts to one of these profiles, separated by commas. With `providers`, one delivery must match both"
    )
    providers: Annotated[
        list[Provider],
        _provider_list(SPECIFIED),
        Field(min_length=1),
    ] = optional("Only posts to one of these networks, separated by commas")
    scheduled_after: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = optional(
        "Only posts that are or were scheduled for this time or later. The offset is required"
    )
    scheduled_before: Annotated[datetime, BeforeValidator(_read_instant_in_query), _INSTANT] = optional(
        "Only posts that are or were scheduled for this time or earlier. The offset is required"
    )
    page: Annotated[int, *_number(0, MAX_NUMBER)] = Field(0, description="The page number, counted from 0")
    per_page: Annotated[int, *_number(1, 100), AlsoCalled(_LENGTH)] = Field(
        20, description="The maximum number of posts on a page"
    )

    @classmethod
    def extended_fields(cls, extensions: tuple[str, ...]) -> dict[str, Any]:
        providers = _provider_list((*SPECIFIED, *extensions))
        # The document describes the items with the component `Provider`.
        items = WithJsonSchema({"type": "array", "items": {"$ref": "#/components/schemas/Provider"}, "minItems": 1})
        kind = Annotated[list[str], providers, Field(min_length=1), items]
        return {"providers": (kind, optional(cls.model_fields["providers"].description or ""))}


class CreateQuery(Query):
    NEVER_EMPTY = frozenset({"strict"})

    strict: Annotated[bool, BeforeValidator(read_flag), WithJsonSchema({"type": "boolean"})] = Field(
        False,
        description="`true`: if a network would refuse the post, the post is not accepted. The response is 400 with "
        "the `problems` of `POST /posts/validate`. `false`: the post is accepted, and only its delivery to that "
        "network fails",
    )


class PostQuery(Query):
    wait: Annotated[int, *_number(1, 60)] = optional(
        "How many seconds to wait for the post to be settled or canceled. If omitted, the request does not wait"
    )


class ChoicesQuery(Query):
    board_id: str = optional("The id of a board: the values of `boardSectionId` are then the sections of this board")


LOG_START = "start"


_ID_PATTERN = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_POSITION = WithJsonSchema({"type": "string", "pattern": f"^({LOG_START}|{_ID_PATTERN})$"})


def _read_position(value: Any) -> str:
    position = LOG_START if value == LOG_START else parse_id(value)
    if position is None:
        raise field_error(f"must be the id of a log entry; to begin with the oldest entry, send after={LOG_START}")
    return position


class LogsQuery(Query):
    NULLABLE = frozenset({"limit", "offset"})
    NEVER_EMPTY = frozenset({"after"})

    limit: Annotated[int, *_number(0, 100), AlsoCalled(_LENGTH)] = Field(
        50, description="The maximum number of entries in the response"
    )
    offset: Annotated[int, *_number(0, MAX_NUMBER)] = Field(0, description="The number of newest entries to skip")
    after: Annotated[str, BeforeValidator(_read_position), _POSITION] = optional(
        "The id of an entry: only the entries written after it, oldest first. `start` begins with the oldest stored "
        "entry. A caller that keeps the last id reads every entry once. Not together with `offset`"
    )
