"""From the shapes of requests to what the domain takes, and what else is wrong with a body whose shape fails.

A caller gets every error in one answer: a misspelled field does not hide that the artifact is unknown.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from pydantic_core import PydanticCustomError

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.validation import Path
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing import drafts
from socialpub.publishing.drafts import Change, Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.api.requests import PostChange, PostDraft, ProviderOptions
from socialpub.web.shapes import read_id, read_instant

T = TypeVar("T")


def draft_of(body: PostDraft) -> Draft:
    return Draft(
        body=body.post.body,
        scheduled_at=body.post.scheduled_at,
        profiles=tuple(body.profiles),
        media=tuple(DraftMedia(item.artifact_id, item.alt) for item in body.media or ()),
        options=options_of(body.provider_options),
    )


def change_of(body: PostChange) -> Change:
    given = set()
    if body.post is not None:
        given |= body.post.model_fields_set
    if body.media is not None:
        given.add("media")
    if body.provider_options is not None:
        given.add("options")
    return Change(
        given=frozenset(given),
        body=body.post.body if body.post else None,
        scheduled_at=body.post.scheduled_at if body.post else None,
        media=tuple(DraftMedia(item.artifact_id, item.alt) for item in body.media or ()),
        options=options_of(body.provider_options),
    )


def options_of(options: ProviderOptions | None) -> dict[str, dict[str, Any]] | None:
    return None if options is None else options.as_dict()


# --- bodies whose shape fails ----------------------------------------------------------------------------------------


def check_rows(rt: Runtime, caller: Caller, value: Any, errors: Sequence[FieldError]) -> list[FieldError]:
    """What the rows and the clock refuse about those fields of a draft or a change that are well-formed."""
    body = _object(value)
    profiles = _readable(body.get("profiles"), read_id)
    media = _readable(body.get("media"), lambda item: read_id(_object(item).get("artifactId")))
    all_readable = profiles is not None and len(profiles) == len(body["profiles"])
    options: dict[str, dict[str, Any]] | None = None
    if all_readable and profiles:
        options = {name: {} for name in PROVIDERS if name in _object(body.get("providerOptions"))}
    draft = Draft(
        body=None,  # neither the rows nor the clock restrict it
        scheduled_at=_instant(_object(body.get("post")).get("scheduledAt")),
        profiles=tuple((profiles or {}).values()),
        media=tuple(DraftMedia(artifact_id) for artifact_id in (media or {}).values()),
        options=options,
    )
    try:
        drafts.targets(rt, rt.reader, draft, caller, rt.now())
    except InvalidRequest as error:
        known = {item.path for item in errors}
        indexes = {"profiles": list(profiles or ()), "media": list(media or ())}
        return [item for item in (_reindexed(item, indexes) for item in error.errors) if item.path not in known]
    return []


def _reindexed(error: FieldError, indexes: dict[str, list[int]]) -> FieldError:
    """Unreadable items were left out: the index becomes that of the request again."""
    path: Path = error.path
    if len(path) > 1 and path[0] in indexes and isinstance(path[1], int):
        path = (path[0], indexes[str(path[0])][path[1]], *path[2:])
    return FieldError(path, error.message)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _instant(value: Any) -> datetime | None:
    try:
        return read_instant(value)
    except PydanticCustomError:
        return None


def _readable(value: Any, read: Callable[[Any], T]) -> dict[int, T] | None:
    """The items of an array that can be read, by index."""
    if not isinstance(value, list):
        return None
    found: dict[int, T] = {}
    for index, item in enumerate(value[:100]):
        try:
            found[index] = read(item)
        except PydanticCustomError:
            continue
    return found
