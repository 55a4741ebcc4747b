"""A post whose very examination kills the worker: noticed by a mark on the disk that an examination leaves while it
lasts.

It happens before the delivery is claimed, so no row says that somebody was at it. Marks cost time: only a process that
follows on one that died leaves them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from socialpub.core import ids
from socialpub.db import delivery_rows
from socialpub.runtime import Runtime

MOST_DEATHS = 3
MOST_MARKS = MOST_DEATHS - 1
"""The first of the deaths left none."""


class Deadly(Exception):
    """The examination of this post has killed too many workers."""


@contextmanager
def marked(rt: Runtime, delivery_id: str) -> Iterator[None]:
    """Leave a mark that stays when this process dies meanwhile. Raises `Deadly` when there are too many."""
    # The id of a row that a stranger wrote may be anything, a path for example.
    if not rt.process.follows_a_death or ids.parse(delivery_id) is None:
        yield
        return
    folder = _folder(rt)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = folder / delivery_id
    begun = mark.stat().st_size if mark.exists() else 0
    if begun >= MOST_MARKS:
        mark.unlink(missing_ok=True)
        raise Deadly
    with mark.open("ab") as file:
        file.write(b".")
    try:
        yield
    except Exception:
        mark.unlink(missing_ok=True)
        raise
    mark.unlink(missing_ok=True)


def clean(rt: Runtime) -> None:
    """Remove the marks of deliveries that ended otherwise."""
    folder = _folder(rt)
    for mark in folder.iterdir() if folder.is_dir() else ():
        if not delivery_rows.is_open(rt.reader, mark.name):
            mark.unlink(missing_ok=True)


def _folder(rt: Runtime) -> Path:
    return rt.settings.run_dir / "examined"
