"""Passwords are hashed one at a time, which is slow on purpose.

Those who wait hold no thread: files and other pages need those. When very many wait, further ones are refused.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from socialpub.accounts import password
from socialpub.core.errors import RateLimited
from socialpub.runtime import Runtime

MOST_WAITING = 100
"""The last of them waits for a few seconds."""
RETRY_SECONDS = 5


@dataclass(slots=True)
class PasswordTurns:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


async def matches(rt: Runtime, given: str, *, known: bool = False) -> bool:
    """Whether this is the password. Raises RateLimited, but not for a `known` browser, whose own count is small."""
    async with _turn(rt, known=known):
        return await asyncio.to_thread(password.matches, rt, given)


async def hashed(rt: Runtime, given: str, repeated: str) -> str:
    """What is stored of a new password. Raises InvalidRequest and RateLimited."""
    async with _turn(rt):
        return await asyncio.to_thread(password.hashed, given, repeated)


@asynccontextmanager
async def _turn(rt: Runtime, *, known: bool = False) -> AsyncIterator[None]:
    turns = rt.memory(PasswordTurns)
    if turns.waiting >= MOST_WAITING and not known:
        detail = "Very many passwords arrive at the moment. Try again in a few seconds."
        raise RateLimited(detail, retry_after_seconds=RETRY_SECONDS)
    turns.waiting += 1
    try:
        async with turns.lock:
            yield
    finally:
        turns.waiting -= 1
