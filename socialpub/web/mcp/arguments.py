"""The arguments of the tools: the shapes of the API's fields, under the names that agents use (contract 10.4)."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from socialpub.core import units
from socialpub.core.validation import AlsoCalled
from socialpub.providers.registry import LABELS, OPTIONS, SPECIFIED
from socialpub.publishing.posts.drafts import MAX_MEDIA
from socialpub.web.api.post_requests import TIME, MediaReference, ProviderOptions
from socialpub.web.api.requests import DeliveryOutcome, PostStatus
from socialpub.web.http.shapes import MAX_IDS, OMITTED, Id, Instant, InstantOrNull, Shape, Trimmed, optional, required
from socialpub.web.openapi.document import clean_schema

REPLY = "replyToPostId"
MAX_WAIT_SECONDS = 50
"""Clients of MCP give up after 60 seconds."""
DEFAULT_WAIT_SECONDS = 20
MAX_LISTED = 20
MAX_REFERENCE = 300
"""Longer than a network and any label."""

_TEXT = AlsoCalled(("body", "content", "caption", "message"))
_OPTIONS = AlsoCalled(("providerOptions",))
_PROFILE = "A reference from list_profiles: id, network, @username, label or network:label"
_REPLY = "The id of our own post to reply to, after it is published ({})"
_WAIT = f"Seconds to wait for the outcome, up to {MAX_WAIT_SECONDS}"

Reference = Annotated[str, Field(min_length=1, max_length=MAX_REFERENCE)]
# Some model providers refuse a list of types.
NewTime = Annotated[
    InstantOrNull, WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]})
]
WaitSeconds = Annotated[int, Field(ge=0, le=MAX_WAIT_SECONDS)]
Media = list[MediaReference]


def labels_with_replies(networks: Sequence[str]) -> list[str]:
    """Return the labels of the networks that can reply to our own post (contract 10.7)."""
    return [LABELS[name] for name in networks if any(option.name == REPLY for option in OPTIONS[name])]


class NoArguments(Shape):
    pass


class ChoicesArguments(Shape):
    profile: Reference = required(_PROFILE)
    board_id: str = optional("Also list the sections of this Pinterest board")


class PostArguments(Shape):
    text: Annotated[Trimmed, _TEXT] = optional("The text. Required without media")
    profiles: Annotated[list[Reference], Field(min_length=1, max_length=MAX_IDS)] = required(f"{_PROFILE}, per account")
    media: Media = Field(OMITTED, min_length=1, max_length=MAX_MEDIA, description="In order; give images an alt text")
    scheduled_at: Annotated[Instant, TIME] = optional("Publish at this time, with an offset. Omitted: publish now")
    options: Annotated[ProviderOptions, _OPTIONS] = optional("Options by network; get_choices describes them")
    reply_to: Id = optional(_REPLY.format("X"))
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] = optional(
        "Unique per intended post. A repeated call with the same key publishes nothing new"
    )
    wait_seconds: WaitSeconds = optional(f"{_WAIT}. Default {DEFAULT_WAIT_SECONDS}")

    @classmethod
    def extended_fields(cls, extensions: tuple[str, ...]) -> dict[str, Any]:
        reply = _REPLY.format(units.listed(labels_with_replies((*SPECIFIED, *extensions)), "or"))
        return {**super().extended_fields(extensions), "reply_to": (Id, optional(reply))}


class PostId(Shape):
    post_id: Id = required("The id of the post")


class OnePost(PostId):
    wait_seconds: WaitSeconds = optional(_WAIT)


class PostList(Shape):
    status: PostStatus = optional("Only posts with this status")
    delivery_status: DeliveryOutcome = optional("Only posts with such a delivery")
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = optional("Default 10")


class ChangedPost(PostId):
    text: Annotated[Trimmed, _TEXT] = optional("The new text")
    media: Media = Field(OMITTED, max_length=MAX_MEDIA, description="Replaces all media")
    scheduled_at: Annotated[NewTime, TIME] = optional("The new time, with an offset. null: publish now")
    options: Annotated[ProviderOptions, _OPTIONS] = optional("Replaces all options")


class RetriedPost(PostId):
    include_unknown: bool = optional("Also repeat deliveries whose outcome is unknown: they may appear twice")


@cache
def schema_of(arguments: type[Shape]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments in one piece. Every prompt of an agent contains it, so it is short."""
    schema = clean_schema(arguments.model_json_schema())
    inlined: dict[str, Any] = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(schema: Any, definitions: dict[str, Any], *, described: bool = True) -> Any:
    """Return the schema with its definitions in place. Only arguments are described, not the fields inside them."""
    if isinstance(schema, list):
        return [_inlined(item, definitions, described=described) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("additionalProperties") is True:
        schema = {"type": "object"}
    members = {
        key: _inlined(value, definitions, described=described)
        for key, value in schema.items()
        if key not in ("$ref", "pattern") and (described or not isinstance(value, str) or key != "description")
    }
    if "$ref" not in schema:
        return members
    shape = _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions, described=False)
    return {**shape, **members}
