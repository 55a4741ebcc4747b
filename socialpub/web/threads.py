"""Runs work that may take minutes on its own thread, outside of the event loop."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(fn: Callable[[], T]) -> T:
    """`fn()` on a thread of its own. Unlike those of `asyncio.to_thread`, a stop of the process does not wait for it:
    what it leaves behind then must be harmless."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def tell(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else act())

    def work() -> None:
        try:
            result = context.run(fn)
        except BaseException as error:
            failure = error
            tell(lambda: future.set_exception(failure))
        else:
            tell(lambda: future.set_result(result))

    threading.Thread(target=work, name="aside", daemon=True).start()
    return await future
