"""Posts at the door: accepted, listed, shown, changed, canceled (spec 4.2)."""

import orjson

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import stamp
from socialpub.db import json_views
from socialpub.db.database import Reader
from socialpub.publishing import audiences, posts
from socialpub.runtime import Runtime
from socialpub.web.api import multipart_posts
from socialpub.web.api.create_post import accept, replay
from socialpub.web.api.create_post import show as show_post
from socialpub.web.api.mapping import also_wrong, change_of, draft_of
from socialpub.web.api.requests import PostChange, PostDraft, PostQuery, PostsQuery
from socialpub.web.endpoint import Answer, Request, endpoint


def is_visible(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    """Whether the path names a post of which this key may know."""
    return posts.visible(rt.reader, caller, path_params["postId"])


@endpoint(scope="write", body=PostDraft, also=also_wrong, replay=replay, multipart=multipart_posts.create)
async def create(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Accept a post: published now, or at its time."""
    return await accept(rt, request, posts.create, draft_of(request.body), caller)


@endpoint(scope="read", body=PostDraft, also=also_wrong)
async def validate(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """What each network would refuse about a post, before it is sent. Nothing is stored."""
    draft = draft_of(request.body)
    # Weighing a text and opening files can take a while: not on the event loop.
    deliveries = await rt.read_aside(lambda reader: posts.validate(rt, reader, draft, caller))
    valid = not any(delivery["problems"] for delivery in deliveries)
    return Answer(200, orjson.dumps({"data": {"valid": valid, "deliveries": deliveries}}))


@endpoint(scope="read", query=PostsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """The posts of which this key may know, newest first."""
    asked: PostsQuery = request.query
    query = json_views.PostQuery(
        audiences=audiences.visible(rt.reader, caller, asked.profile_ids, asked.providers),
        status=asked.status,
        scheduled_after=stamp(asked.scheduled_after) if asked.scheduled_after else None,
        scheduled_before=stamp(asked.scheduled_before) if asked.scheduled_before else None,
        page=asked.page,
        per_page=asked.per_page,
    )
    page, total = await rt.read_aside(lambda reader: _page(reader, query)) if query.long else _page(rt.reader, query)
    return Answer(
        200,
        b'{"data":%b,"pagination":{"page":%d,"perPage":%d,"total":%d}}' % (page, query.page, query.per_page, total),
    )


@endpoint(scope="read", resource=is_visible, late=True, query=PostQuery)
async def show(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """One post; with `?wait=` as soon as it is settled or canceled, or when the time is over."""
    post_id = request.path_params["postId"]
    asked: PostQuery = request.query
    if asked.wait is not None:
        await request.app.waiting.until_final(post_id, asked.wait)
    return _post(rt, post_id)


@endpoint(scope="write", resource=is_visible, body=PostChange, also=also_wrong)
async def edit(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Change a scheduled post whose time is still to come."""
    post_id = request.path_params["postId"]
    await rt.write_soon(posts.edit, post_id, change_of(request.body), caller)
    return _post(rt, post_id)


@endpoint(scope="write", resource=is_visible)
async def cancel(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Cancel a scheduled post that has not started."""
    post_id = request.path_params["postId"]
    await rt.write_soon(posts.cancel, post_id, caller)
    return _post(rt, post_id)


@endpoint(scope="read", resource=is_visible)
async def attempts(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Why it is as it is: every attempt of the post's deliveries, oldest first."""
    shown = json_views.attempts(rt.reader, request.path_params["postId"], rt.stamp())
    return Answer(200, b'{"data":' + shown + b"}")


def _page(reader: Reader, query: json_views.PostQuery) -> tuple[bytes, int]:
    return json_views.posts(reader, query), json_views.count_posts(reader, query)


def _post(rt: Runtime, post_id: str) -> Answer:
    return Answer(200, b'{"data":' + show_post(rt.reader, post_id) + b"}")
