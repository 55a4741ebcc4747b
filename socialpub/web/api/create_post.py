"""What JSON and multipart have in common once a draft is whole: accept the post, answer with it, replay the answer."""

from typing import Any

import orjson

from socialpub.accounts.api_keys import Caller
from socialpub.core import signed_urls
from socialpub.core.errors import NotFound
from socialpub.db import json_views
from socialpub.db.transaction import Reader, Tx
from socialpub.publishing import draft_validation
from socialpub.publishing.drafts import Draft
from socialpub.publishing.idempotency import Kept
from socialpub.runtime import Runtime
from socialpub.web import idempotent
from socialpub.web.answer import Answer, created
from socialpub.web.request import Request


async def accept(rt: Runtime, request: Request, fn: Any, *args: Any) -> Answer:
    """Run the write `fn(rt, tx, *args) -> post id` and answer with the post it made."""
    post_id = await idempotent.write(rt, request, _keep, fn, *args)
    return created(show(rt.reader, post_id), _location(rt, post_id))


async def be_strict(rt: Runtime, request: Request, draft: Draft, caller: Caller) -> None:
    """With `?strict=true` a post that a network would refuse is not accepted. Raises InvalidRequest."""
    if request.query.strict:
        # Weighing a text and opening files can take a while: not on the event loop.
        await rt.read_aside(lambda reader: draft_validation.refuse_problems(rt, reader, draft, caller))


def _keep(rt: Runtime, tx: Tx, post_id: str) -> Kept:
    return Kept(201, post_id, show(tx.reader, post_id))


def replay(rt: Runtime, kept: Kept) -> Answer:
    """The first answer again. Where it showed a file, the kept body holds the storage key: it is signed now."""
    post = orjson.loads(kept.body)
    for item in post["media"]:
        if "url" in item:
            item["url"] = signed_urls.media_url(rt.settings, rt.secrets, item["url"], rt.now())
    return created(orjson.dumps(post), _location(rt, post["id"]))


def show(reader: Reader, post_id: str) -> bytes:
    """The post as the API shows it. Raises NotFound."""
    shown = json_views.post(reader, post_id)
    if shown is None:
        raise NotFound("There is no post with this id.")
    return shown


def _location(rt: Runtime, post_id: str) -> str:
    return f"{rt.settings.base_url}/api/v1/posts/{post_id}"
