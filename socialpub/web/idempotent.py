"""The Idempotency-Key of a request: look up, announce, work, replay (contract 1.11)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from socialpub.publishing import idempotency
from socialpub.publishing.idempotency import Kept, Ticket
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.request import Request

Replay = Callable[[Runtime, Kept], Answer]
"""How an endpoint answers with what it kept, signed URLs made anew."""

REPLAYED = (b"idempotency-replayed", b"true")


async def run(
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
    key = idempotency.key_of(request.headers.get(b"idempotency-key"))
    if key is None:
        check()
        return await work()
    assert request.caller is not None
    ticket = Ticket(request.caller.key_id, key, await fingerprint())
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


async def write(rt: Runtime, request: Request, keep: Callable[..., Kept], fn: Callable[..., Any], *args: Any) -> Any:
    """Run a write; when the request was announced, keep in the same write what `keep(rt, tx, result)` returns."""
    if request.ticket is None:
        return await rt.write_soon(fn, *args)
    return await rt.write_soon(idempotency.keep, request.ticket, keep, fn, *args)
