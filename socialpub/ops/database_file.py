"""The database's file: as large as its rows, or larger, and how what is too much of it is given back."""

from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.core import commands, sizes
from socialpub.core.errors import OperatorError
from socialpub.db import free_pages
from socialpub.db.locks import living
from socialpub.db.transaction import Tx
from socialpub.ops.finding import Finding, note
from socialpub.runtime import Runtime

MOST_STEPS = 20
"""In one round."""


@dataclass(frozen=True, slots=True)
class CompactedFile:
    before_bytes: int
    after_bytes: int


def give_back(rt: Runtime) -> int:
    """Give free pages back to the disk while there are many, some in each of a few small writes; how many writes."""
    for step in range(MOST_STEPS):
        pages = free_pages.read(rt.reader)
        if rt.stopping.is_set() or not (pages.in_steps and pages.many_free):
            return step
        rt.write(_give_back)
    return MOST_STEPS


def _give_back(rt: Runtime, tx: Tx) -> None:
    free_pages.give_back(tx)


def compact(rt: Runtime) -> CompactedFile:
    """Write the file anew. Raises OperatorError while another process works here, and when there is no room."""
    others = [name for name in living(rt.process.folder) if name != rt.process.name]
    if others:
        raise OperatorError(
            f"Stop socialpub first (running: {', '.join(others)}). Compacting blocks all writes.",
            f"{commands.while_stopped('admin', 'compact')}.",
        )
    before = free_pages.read(rt.reader).size_bytes
    # The new one is made beside the old, and then comes through the journal.
    needed, free = 2 * before, rt.files.free_bytes() - int(rt.settings.health.disk_floor_bytes)
    if free < needed:
        raise OperatorError(
            f"To write the database anew takes {sizes.write(needed)} beside what is kept free, and there are "
            f"{sizes.write(max(free, 0))}.",
            "Make room, or leave it: what is free inside of the file is filled again.",
        )
    rt.db.compact()
    return CompactedFile(before, free_pages.read(rt.reader).size_bytes)


def check(rt: Runtime) -> Iterator[Finding]:
    """What the doctor says of it."""
    pages = free_pages.read(rt.reader)
    if pages.many_free and not pages.in_steps:
        yield note(
            "database",
            f"{sizes.write(pages.free_bytes)} of the database's {sizes.write(pages.size_bytes)} are free inside of it.",
            f"{commands.while_stopped('admin', 'compact')}. This returns the space to the disk.",
        )
