"""The endpoints of posts: create, validate, list, show, change, cancel, retry (spec 4.2)."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import stamp
from socialpub.core.errors import NotFound, cut_path
from socialpub.db.connection import Reader
from socialpub.db.queries import api_json, post_list
from socialpub.db.queries.post_list import PostFilter, PostPage
from socialpub.publishing.posts import audiences, posts, retries, validation
from socialpub.publishing.posts.validation import CheckedDelivery
from socialpub.runtime import Runtime
from socialpub.web.api import drafts
from socialpub.web.api.drafts import accept, check_rows, replay, to_change, to_draft
from socialpub.web.api.multipart import MULTIPART_POST
from socialpub.web.api.requests import CreateQuery, PostChange, PostDraft, PostQuery, PostsQuery, RetryRequest
from socialpub.web.http.answer import JSON, Answer, ok
from socialpub.web.http.endpoint import authenticate_again, endpoint
from socialpub.web.http.request import Request


def is_visible(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    """Whether the path names a post that this key may see."""
    return posts.visible(rt.reader, caller, path_params["postId"])


@endpoint(scope="write", query=CreateQuery, body=PostDraft, form=MULTIPART_POST, check_rows=check_rows, replay=replay)
async def create(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Accept a post: published now, or at its time."""
    draft = to_draft(request.body)
    await drafts.be_strict(rt, request, draft, caller)
    return await accept(rt, request, posts.create, draft, caller)


@endpoint(scope="read", body=PostDraft, check_rows=check_rows)
async def validate(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """What each network would refuse about a post, before it is sent. Nothing is stored."""
    draft = to_draft(request.body)
    # Weighing a text and opening files can take a while: not on the event loop.
    checked = await rt.read_aside(lambda reader: validation.validate(rt, reader, draft, caller))
    valid = not any(delivery.problems for delivery in checked)
    return ok(orjson.dumps({"valid": valid, "deliveries": [_checked(delivery) for delivery in checked]}))


@endpoint(scope="read", query=PostsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer | None:
    """The posts that this key may see, newest first."""
    query: PostsQuery = request.query
    wanted = PostFilter(
        status=query.status,
        outcome=query.delivery_status,
        profiles=tuple(query.profile_ids or ()),
        providers=tuple(query.providers or ()),
        scheduled_after=stamp(query.scheduled_after) if query.scheduled_after else None,
        scheduled_before=stamp(query.scheduled_before) if query.scheduled_before else None,
        page=query.page,
        per_page=query.per_page,
    )

    def read(reader: Reader) -> PostPage:
        visible = audiences.visible_audiences(reader, caller, query.profile_ids, query.providers)
        return post_list.read(reader, replace(wanted, audiences=visible))

    looks_through = caller.limited or bool(query.model_fields_set & {"profile_ids", "providers", "delivery_status"})
    is_long = wanted.long or (looks_through and audiences.are_many(rt.reader))
    page = await rt.read_aside(read) if is_long else read(rt.reader)
    end = b'],"pagination":{"page":%d,"perPage":%d,"total":%d}}' % (wanted.page, wanted.per_page, page.total)
    if page.rest:
        await _send_in_pieces(rt, request, page, end)
        return None
    return Answer(200, b'{"data":[%b%b' % (b",".join(page.shown), end))


@endpoint(scope="read", resource=is_visible, query=PostQuery)
async def show(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """One post; with `?wait=` as soon as it is settled or canceled, or when the time is over."""
    post_id = request.path_params["postId"]
    query: PostQuery = request.query
    if query.wait is not None:
        await request.state.long_poll.until_final(post_id, query.wait, caller.key_id)
        if not is_visible(rt, authenticate_again(request), request.path_params):
            raise NotFound("Nothing here has this id any more, or it is outside of this key's scope.")
    return ok(drafts.render_created(rt.reader, post_id))


@endpoint(scope="write", resource=is_visible, body=PostChange, check_rows=check_rows)
async def edit(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Change a scheduled post whose time is still to come."""
    post_id = request.path_params["postId"]
    await rt.write_soon(posts.edit, post_id, to_change(request.body), caller)
    return ok(drafts.render_created(rt.reader, post_id))


@endpoint(scope="write", resource=is_visible)
async def cancel(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Cancel a scheduled post that has not started."""
    post_id = request.path_params["postId"]
    await rt.write_soon(posts.cancel, post_id, caller)
    return ok(drafts.render_created(rt.reader, post_id))


@endpoint(scope="write", resource=is_visible, body=RetryRequest, body_optional=True, replay=replay)
async def retry(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Publish a post again where it failed."""
    post_id = request.path_params["postId"]
    return await accept(rt, request, retries.retry, post_id, caller, request.body.include_unknown)


@endpoint(scope="read", resource=is_visible)
async def attempts(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Why it is as it is: every attempt of the post's deliveries, oldest first."""
    return ok(api_json.attempts(rt.reader, request.path_params["postId"], rt.stamp()))


async def _send_in_pieces(rt: Runtime, request: Request, page: PostPage, end: bytes) -> None:
    """A page that takes megabytes: however long it is, one post of it is in memory at a time, and others are answered
    in between."""
    await request.start(200, ((b"content-type", JSON),))
    await request.send(b'{"data":[' + b",".join(page.shown), more=True)
    for post_id in page.rest:
        # A quick reader never makes us wait, and then no other request would get its turn.
        await asyncio.sleep(0)
        await request.send(b"," + drafts.render_created(rt.reader, post_id), more=True)
    await request.send(end, more=False)


def _checked(delivery: CheckedDelivery) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "profileId": delivery.profile_id,
        "provider": delivery.provider,
        "problems": [{"path": cut_path(problem.path), "message": problem.message} for problem in delivery.problems],
    }
    if delivery.notes:
        shown["notes"] = delivery.notes
    return shown
