"""From the body of a request to a draft, and from an accepted post to the answer."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import orjson
from pydantic_core import PydanticCustomError

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldError, InvalidRequest, NotFound
from socialpub.core.secrets import signed_urls
from socialpub.core.validation import Path
from socialpub.db.connection import Reader, Tx
from socialpub.db.queries import api_json
from socialpub.providers.registry import PROVIDERS
from socialpub.publishing.posts import drafts, validation
from socialpub.publishing.posts.drafts import Change, Draft, DraftMedia
from socialpub.publishing.posts.idempotency import StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.api.requests import PostChange, PostDraft, ProviderOptions
from socialpub.web.http import idempotent
from socialpub.web.http.answer import Answer, created
from socialpub.web.http.request import Request
from socialpub.web.http.shapes import read_id, read_instant

# MERGED from web/api/mapping.py: From the shapes of requests to what the domain takes, and what else is wrong with

T = TypeVar("T")


def to_draft(body: PostDraft) -> Draft:
    return Draft(
        body=body.post.body,
        scheduled_at=body.post.scheduled_at,
        profiles=tuple(body.profiles),
        media=tuple(DraftMedia(item.artifact_id, item.alt) for item in body.media or ()),
        options=to_options(body.provider_options),
    )


def to_change(body: PostChange) -> Change:
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
        options=to_options(body.provider_options),
    )


def to_options(options: ProviderOptions | None) -> dict[str, dict[str, Any]] | None:
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


# MERGED from web/api/create_post.py: What JSON and multipart have in common once a draft is whole: accept the post


async def accept(rt: Runtime, request: Request, fn: Any, *args: Any) -> Answer:
    """Run the write `fn(rt, tx, *args) -> post id` and answer with the post it made."""
    post_id = await idempotent.write_once(rt, request, _keep, fn, *args)
    return created(render_created(rt.reader, post_id), _location(rt, post_id))


async def be_strict(rt: Runtime, request: Request, draft: Draft, caller: Caller) -> None:
    """With `?strict=true` a post that a network would refuse is not accepted. Raises InvalidRequest."""
    if request.query.strict:
        # Weighing a text and opening files can take a while: not on the event loop.
        await rt.read_aside(lambda reader: validation.refuse_problems(rt, reader, draft, caller))


def _keep(rt: Runtime, tx: Tx, post_id: str) -> StoredResponse:
    return StoredResponse(201, post_id, render_created(tx, post_id))


def replay(rt: Runtime, kept: StoredResponse) -> Answer:
    """The first answer again. Where it showed a file, the kept body holds the storage key: it is signed now."""
    post = orjson.loads(kept.body)
    for item in post["media"]:
        if "url" in item:
            item["url"] = signed_urls.media_url(rt.settings, rt.secrets, item["url"], rt.now())
    return created(orjson.dumps(post), _location(rt, post["id"]))


def render_created(reader: Reader, post_id: str) -> bytes:
    """The post as the API shows it. Raises NotFound."""
    shown = api_json.post(reader, post_id)
    if shown is None:
        raise NotFound("There is no post with this id.")
    return shown


def _location(rt: Runtime, post_id: str) -> str:
    return f"{rt.settings.base_url}/api/v1/posts/{post_id}"
