"""The Idempotency-Key of a request: look up, announce, work, replay (contract 1.11)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from socialpub.publishing.posts import idempotency
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Answer
from socialpub.web.http.request import Request

Replay = Callable[[Runtime, StoredResponse], Answer]
"""How an endpoint answers with what it kept, signed URLs made anew."""

REPLAYED = (b"idempotency-replayed", b"true")


async def run_once(
    rt: Runtime,
    request: Request,
    fingerprint: Callable[[], Awaitable[str]],
    check: Callable[[], None],
    work: Callable[[], Awaitable[Answer | None]],
    replay: Replay,
) -> Answer | None:
    """Answer with `work`, or with what it answered before under the same key.

    `check` holds the rules of the body and comes after the look-up: what was accepted yesterday replays even when it
    could not be accepted today. `work` finds `request.ticket` and keeps its answer by `write`.
    """
    key = idempotency.read_key(request.headers.get(b"idempotency-key"))
    if key is None:
        check()
        return await work()
    assert request.caller is not None
    ticket = RequestKey(request.caller.key_id, key, await fingerprint())
    kept = idempotency.find(rt, rt.reader, ticket, rt.now())
    if kept is None:
        check()
        kept = await rt.write_soon(idempotency.begin, ticket)
    if kept is not None:
        answer = replay(rt, kept)
        return answer._replace(headers=(*answer.headers, REPLAYED))
    request.ticket = ticket
    try:
        return await work()
    except (Exception, asyncio.CancelledError):
        await rt.write_soon(idempotency.forget, ticket)
        raise


async def write_once(
    rt: Runtime, request: Request, keep: Callable[..., StoredResponse], fn: Callable[..., Any], *args: Any
) -> Any:
    """Run a write; when the request was announced, keep in the same write what `keep(rt, tx, result)` returns."""
    if request.ticket is None:
        return await rt.write_soon(fn, *args)
    return await rt.write_soon(idempotency.store_response, request.ticket, keep, fn, *args)
