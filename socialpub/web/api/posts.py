"""The endpoints of posts (spec 4.2)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from socialpub.accounts import key_limits
from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import stamp
from socialpub.core.errors import NotFound, cut_path
from socialpub.core.secrets import signed_urls
from socialpub.db.connection import Database
from socialpub.db.queries import api_json
from socialpub.db.queries.post_list import PostFilter, PostPage
from socialpub.db.tables import audience_rows
from socialpub.publishing.media.imports import REQUEST_SECONDS
from socialpub.publishing.posts import details, posts, retries
from socialpub.publishing.posts.drafts import (
    CheckedDelivery,
    Draft,
    DraftMedia,
    check_draft,
    check_targets,
    fetch_media,
    refuse_problems,
)
from socialpub.publishing.posts.idempotency import StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.api import post_requests
from socialpub.web.api.post_requests import FormDraft, PayloadForm, PostChange, PostDraft, check_rows
from socialpub.web.api.requests import CreateQuery, PostQuery, PostsQuery, RetryRequest
from socialpub.web.http.endpoint import NO_SUCH_ID, FormBody, authenticate_again, endpoint, write_once
from socialpub.web.http.long_poll import while_connected
from socialpub.web.http.multipart import receive_form
from socialpub.web.http.responses import JSON, JSONResponse, created, ok


def is_visible(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    return posts.visible(rt.db, caller, path_params["postId"])


def is_changeable(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    """Do the same for a change. Raises Forbidden if the key sees the post but may not change it."""
    visible = is_visible(rt, caller, path_params)
    if visible and caller.restricted:
        posts.check_own(rt.db, path_params["postId"], caller)
    return visible


# --- creating --------------------------------------------------------------------------------------------------------


_NO_MEDIA = b'"media":[]'
"""A part of the JSON of a post without media. A text of the post cannot contain it, because JSON escapes its quotes."""


def _created(_rt: Runtime, tx: Database, post_id: str) -> StoredResponse:
    """Return the response to a new post. It contains storage keys instead of signed URLs."""
    post = api_json.post(tx, post_id)
    assert post is not None
    return StoredResponse(201, post_id, post)


def render(rt: Runtime, response: StoredResponse) -> Response:
    """Render a response with newly signed URLs."""
    body = response.body
    if _NO_MEDIA not in body:
        post = orjson.loads(body)
        for item in post["media"]:
            if "url" in item:
                item["url"] = signed_urls.media_url(rt.settings, rt.secrets, item["url"], rt.now())
        body = orjson.dumps(post)
    return created(body, f"{rt.settings.base_url}/api/v1/posts/{response.location}")


async def create_with_files(rt: Runtime, caller: Caller, request: Request, form: PayloadForm) -> Response:
    draft = await post_requests.verify_files(rt, form, request.state.body, caller.key_id)
    return await _create_after_checks(rt, caller, request, draft)


_FORM = FormBody(
    read=lambda rt, request: receive_form(rt, request, PayloadForm()), shape=FormDraft, handler=create_with_files
)


@endpoint(scope="write", query=CreateQuery, body=PostDraft, form=_FORM, check_rows=check_rows, replay=render)
async def create(rt: Runtime, caller: Caller, request: Request) -> Response:
    draft = request.state.body.to_draft()
    if draft.media or request.state.query.strict:
        return await _create_after_checks(rt, caller, request, draft)
    return render(rt, await write_once(rt, request, _created, posts.create, draft, caller))


async def _create_after_checks(rt: Runtime, caller: Caller, request: Request, draft: Draft) -> Response:
    """Create the post after its files are fetched and, for `strict`, after the networks' checks."""
    strict = request.state.query.strict

    def check(db: Database) -> None:
        if strict:
            refuse_problems(rt, db, draft, caller)
        else:
            check_targets(rt, db, draft, caller, rt.now())

    with ExitStack() as files:
        if any(item.url for item in draft.media):
            # No file is fetched for a post that would be refused anyway.
            await rt.read_in_thread(check)
            key_limits.check_day(rt.db, caller, len(draft.profiles), rt.now())
            draft = replace(draft, media=await _fetch(rt, request, draft.media, files, caller))
        if strict:
            # Checking the text and the files would block the event loop.
            await rt.read_in_thread(check)
        return render(rt, await write_once(rt, request, _created, posts.create, draft, caller))


async def _fetch(
    rt: Runtime, request: Request, media: Sequence[DraftMedia], kept: ExitStack, caller: Caller
) -> tuple[DraftMedia, ...]:
    work = fetch_media(rt, media, kept, caller.key_id, seconds=getattr(request.state, "fetch_seconds", REQUEST_SECONDS))
    return await while_connected(request, work)


@endpoint(scope="write", resource=is_visible, body=RetryRequest, body_optional=True, replay=render)
async def retry(rt: Runtime, caller: Caller, request: Request) -> Response:
    failed_id, include_unknown = request.path_params["postId"], request.state.body.include_unknown
    return render(rt, await write_once(rt, request, _created, retries.retry, failed_id, caller, include_unknown))


@endpoint(scope="read", body=PostDraft, check_rows=check_rows)
async def validate(rt: Runtime, caller: Caller, request: Request) -> Response:
    draft = request.state.body.to_draft()
    # Checking the text and the files would block the event loop.
    checked = await rt.read_in_thread(lambda db: check_draft(rt, db, draft, caller))
    valid = not any(delivery.problems for delivery in checked)
    return ok(orjson.dumps({"valid": valid, "deliveries": [_render_checked(delivery) for delivery in checked]}))


def _render_checked(delivery: CheckedDelivery) -> dict[str, Any]:
    body: dict[str, Any] = {
        "profileId": delivery.profile_id,
        "provider": delivery.provider,
        "problems": [{"path": cut_path(problem.path), "message": problem.message} for problem in delivery.problems],
    }
    if delivery.notes:
        body["notes"] = delivery.notes
    return body


# --- changing --------------------------------------------------------------------------------------------------------


@endpoint(scope="write", resource=is_changeable, body=PostChange, check_rows=check_rows)
async def edit(rt: Runtime, caller: Caller, request: Request) -> Response:
    post_id, draft = request.path_params["postId"], request.state.body.to_draft()
    with ExitStack() as files:
        if any(item.url for item in draft.media):
            posts.check_edit(rt, rt.db, post_id, draft, caller, rt.now())
            draft = replace(draft, media=await _fetch(rt, request, draft.media, files, caller))
        await rt.write_soon(posts.edit, post_id, draft, caller)
    return ok(_show(rt.db, post_id))


@endpoint(scope="write", resource=is_changeable)
async def cancel(rt: Runtime, caller: Caller, request: Request) -> Response:
    post_id = request.path_params["postId"]
    await rt.write_soon(posts.cancel, post_id, caller)
    return ok(_show(rt.db, post_id))


# --- reading ---------------------------------------------------------------------------------------------------------


def _show(db: Database, post_id: str) -> bytes:
    """Return the post as the API shows it. Raises NotFound."""
    post = api_json.post(db, post_id)
    if post is None:
        raise NotFound("There is no post with this id.")
    return post


def _find(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bytes | None:
    """Return the post as the API shows it. None: the caller does not see a post with this id."""
    audience, post = api_json.post_with_audience(rt.db, path_params["postId"]) or (None, None)
    return post if audience is not None and audience_rows.sees(rt.db, caller, audience) else None


@endpoint(scope="read", resource=_find, query=PostQuery)
async def show(rt: Runtime, caller: Caller, request: Request) -> Response:
    query: PostQuery = request.state.query
    post: bytes | None = request.state.resource
    if query.wait is not None:
        await request.app.state.long_poll.until_final(request.path_params["postId"], query.wait, caller.key_id)
        post = _find(rt, authenticate_again(request), request.path_params)
        if post is None:
            raise NotFound(NO_SUCH_ID)
    return ok(post)


@endpoint(scope="read", resource=is_visible)
async def attempts(rt: Runtime, caller: Caller, request: Request) -> Response:
    return ok(details.load_attempts(rt, rt.db, request.path_params["postId"]))


@endpoint(scope="read", query=PostsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Response:
    query: PostsQuery = request.state.query
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

    page = await posts.load_page(rt, caller, wanted)
    end = b'],"pagination":{"page":%d,"perPage":%d,"total":%d}}' % (wanted.page, wanted.per_page, page.total)
    if page.rest:
        return StreamingResponse(_in_pieces(rt, page, end), media_type=JSON)
    return JSONResponse(b'{"data":[%b%b' % (b",".join(page.shown), end))


async def _in_pieces(rt: Runtime, page: PostPage, end: bytes) -> AsyncIterator[bytes]:
    """Return a page of megabytes with one post in memory at a time."""
    yield b'{"data":[' + b",".join(page.shown)
    for post_id in page.rest:
        # With a fast client, sending never waits. Other requests need this pause.
        await asyncio.sleep(0)
        yield b"," + _show(rt.db, post_id)
    yield end
