"""Long statements over a whole database file: they report their progress, and Ctrl-C ends them."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from socialpub.core import machine, progress

CHUNK_BYTES = 1 << 20
STEPS = 100_000
"""The number of instructions of SQLite between two reports: about 5 ms."""


def size_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the database without its journal."""
    (pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return int(pages) * int(page_bytes)


def read_ahead(database: Path) -> None:
    """Read the file in order if it fits in half of the memory. A check then finds its pages in memory.

    A check alone reads the pages in the order of the tables, which takes four times as long from a disk. Do not call
    this in a process that has the database open: the end of any other use of the file ends SQLite's locks.
    """
    with suppress(OSError), database.open("rb", buffering=0) as file:  # the check reports the error
        size = os.fstat(file.fileno()).st_size
        if size > machine.memory_bytes() // 2:
            return
        progress.begin("Reading the database", size)
        chunk = bytearray(CHUNK_BYTES)
        while read := file.readinto(chunk):
            progress.advance(read)


def find_damage(connection: sqlite3.Connection, step: str, *, compare_indexes: bool = False) -> str:
    """Check the whole file. Return "ok", or the first damage. `step` is the name of this step.

    `compare_indexes` also compares every index with its table, which takes longer. Raise sqlite3.Error.
    """
    pragma = "integrity_check" if compare_indexes else "quick_check"
    progress.begin(step)
    with interruptible(connection, lambda: progress.advance(0)):
        return str(connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0])


@contextmanager
def interruptible(connection: sqlite3.Connection, report: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Call `report` regularly while SQLite runs a statement, and let Ctrl-C end the statement."""
    raised: list[BaseException] = []

    def call() -> bool:
        try:
            report()
        except BaseException as error:  # sqlite3 would drop it
            raised.append(error)
            return True
        return False

    connection.set_progress_handler(call, STEPS)
    try:
        yield
    except Exception as error:
        if raised:
            raise raised[0] from None
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether SQLite was interrupted."""
    # An interrupted write ends its transaction, so peewee's rollback fails with another error.
    while error is not None:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return True
        error = error.__context__
    return False
