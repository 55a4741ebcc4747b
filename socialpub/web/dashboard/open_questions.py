"""Questions to networks that a page waits for: one that hangs holds one thread, and not one for every look at it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from socialpub.runtime import Runtime
from socialpub.web import aside

T = TypeVar("T")


@dataclass(slots=True)
class OpenQuestions:
    """Those that nobody has an answer to yet, by what is asked."""

    tasks: dict[tuple[str, ...], asyncio.Task[Any]] = field(default_factory=dict)


async def answer(rt: Runtime, question: tuple[str, ...], ask: Callable[[], T], patience_seconds: float) -> T:
    """What `ask()` returns, on a thread of its own, or what the same question returns that is on its way already.

    Raises what it raises, and TimeoutError when patience is over: it goes on then, and may be answered at the next
    look. Answers to one question are of one type.
    """
    tasks = rt.memory(OpenQuestions).tasks

    def ended(task: asyncio.Task[Any]) -> None:
        del tasks[question]
        task.exception()  # whoever asked may have gone on without the answer

    if question not in tasks:
        tasks[question] = asyncio.create_task(aside.run(ask))
        tasks[question].add_done_callback(ended)
    asking: asyncio.Task[T] = tasks[question]
    await asyncio.wait({asking}, timeout=patience_seconds)
    if not asking.done():
        raise TimeoutError
    return asking.result()
