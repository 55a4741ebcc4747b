"""The words of the API, the queries of every endpoint, and the bodies that are not posts (spec section 4)."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from socialpub.core import units
from socialpub.core.clock import parse_id
from socialpub.core.units import MAX_VIDEO_BYTES
from socialpub.core.validation import AlsoCalled, field_error
from socialpub.media.types import ACCEPTED_TYPES, canonical_type
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing.media import uploads
from socialpub.web.http.shapes import (
    LARGEST,
    WHERE_IDS_ARE,
    Id,
    Query,
    Shape,
    optional,
    read_flag,
    read_instant,
    read_number,
    required,
)

# --- words: states and kinds, each a component of the OpenAPI document so that generators make one type of it ---------

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
            description="`active`: usable. `reauthRequired`: the network refuses its tokens; its owner connects the "
            "same account again, and what comes due waits for that. `disconnected`: for good, nothing is sent any more."
        ),
    ],
)

PostStatus = TypeAliasType(
    "PostStatus",
    Annotated[
        Literal["pending", "settled", "canceled", "scheduled"],
        Field(
            description="`pending`: accepted, and not every delivery has its outcome. `settled`: every delivery has "
            "one. `canceled`: stopped before any delivery ran. `scheduled`: waits for its time; can be changed and "
            "canceled."
        ),
    ],
)

DeliveryStatus = TypeAliasType(
    "DeliveryStatus",
    Annotated[
        Literal["pending", "published", "failed", "canceled"],
        Field(
            description="`pending`: waits for its time, runs, or waits for its network; the attempts say for what. "
            "`published`: exactly one post is up. `failed`: nothing was posted, and `errorMessage` says what to "
            "change, or it begins with `Outcome unknown:` and says where to look. `canceled`: stopped with its post."
        ),
    ],
)

DeliveryOutcome = TypeAliasType(
    "DeliveryOutcome",
    Annotated[
        Literal["pending", "published", "failed", "unknown", "canceled"],
        Field(
            description="What became of a delivery, as lists of posts are filtered by it. `pending`: it has no outcome "
            "yet. `published`: exactly one post is up. `failed`: nothing was posted. `unknown`: it failed with "
            "`Outcome unknown:`, and may be public all the same. `canceled`: stopped with its post."
        ),
    ],
)

ArtifactStatus = TypeAliasType(
    "ArtifactStatus",
    Annotated[
        Literal["reserved", "verified", "rejected"],
        Field(
            description="`reserved`: an id, and room for the bytes. `verified`: examined, and usable in posts. "
            "`rejected`: examined and refused; its bytes are gone."
        ),
    ],
)

MediaKind = TypeAliasType(
    "MediaKind",
    Annotated[
        Literal["image", "video"],
        Field(description="What the bytes were found to be: `image` (an animated one, too) or `video`."),
    ],
)

AttemptOutcome = TypeAliasType(
    "AttemptOutcome",
    Annotated[
        Literal["done", "waiting", "held", "retrying", "refused", "unknown", "published"],
        Field(
            description="`done`: the step is finished, the next one follows. `waiting`: the network wants time, until "
            "`nextAt`. `held`: nothing is sent until somebody acts, as `message` says. `retrying`: it failed in "
            "passing and is tried again at `nextAt`. `refused`: the network said no. `unknown`: no answer tells how "
            "the call ended; the account is looked at before anything is sent again. `published`: the post is up."
        ),
    ],
)


_LENGTH = ("limit", "pageSize", "perPage", "size", "count")


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
        raise field_error(uploads.unaccepted(value))
    return value


def check_file_size(value: int) -> int:
    if value > MAX_VIDEO_BYTES:
        raise field_error(f"must be at most {units.size(MAX_VIDEO_BYTES)}")
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
    known = [parse_id(item) for item in value.split(",")]
    if None in known:
        raise field_error(f"must be a comma-separated list of UUIDs; {WHERE_IDS_ARE}")
    return [item for item in known if item is not None]


def _read_provider_list(value: Any) -> list[str]:
    names: list[str] = value.split(",")
    if not set(names) <= set(PROVIDERS):
        raise field_error(f"must be a comma-separated list of {', '.join(PROVIDERS)}")
    return names


def _states(own: TypeAliasType, other: TypeAliasType, advice: str) -> BeforeValidator:
    """Refuse a state that only something else has, and say which parameter takes it."""
    states, others = (get_args(get_args(alias.__value__)[0]) for alias in (own, other))

    def check(value: Any) -> Any:
        if value in others and value not in states:
            raise field_error(f"must be one of {', '.join(states)}; {advice}={value}")
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
