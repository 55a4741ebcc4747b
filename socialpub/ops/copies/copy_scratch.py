"""Where a copy is put together: a folder beside its place, which may be anywhere, and is gone with whoever works in it.

It is written down here first, by a file that its maker holds locked. So what a process that died has left is found by
the next copy and by housekeeping, and never what somebody still works in.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from socialpub.core import durable_files, logging
from socialpub.core.settings.loader import Settings
from socialpub.db.locks import FileLock
from socialpub.runtime import Runtime

PREFIX = ".socialpub-backup-"

log = logging.get_logger("socialpub.copies")


@contextmanager
def folder_in(settings: Settings, parent: Path) -> Iterator[Path]:
    """A folder in `parent` that nobody else may read, as long as the context lasts. Raises OSError."""
    while True:
        scratch = parent.resolve() / f"{PREFIX}{secrets.token_hex(6)}"
        note = FileLock(settings.run_dir / scratch.name)
        if note.try_acquire():
            break
    try:
        note.write(os.fsencode(scratch))
        durable_files.flush_folder(settings.run_dir)
        scratch.mkdir(mode=0o700)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if not os.path.lexists(scratch):
            note.path.unlink(missing_ok=True)
        note.release()


def clean(settings: Settings, *, sees_all: bool) -> None:
    """Remove what processes that died have left. A service may not see every folder: what is not there for it stays
    written down, until somebody who sees all that the owner sees comes by."""
    for path in sorted(settings.run_dir.glob(f"{PREFIX}*")):
        note = FileLock(path)
        try:
            if note.try_acquire():
                _remove(path, sees_all)
        except OSError as error:
            log.warning("what a copy that was cut off has left cannot be removed", note=str(path), reason=str(error))
        finally:
            note.release()


def clean_hourly(rt: Runtime) -> None:
    """The same from the worker."""
    clean(rt.settings, sees_all=False)


def _remove(note: Path, sees_all: bool) -> None:
    scratch = Path(os.fsdecode(note.read_bytes()))
    if scratch.name == note.name and scratch.is_dir():  # else it died before it had made one
        shutil.rmtree(scratch)
    elif scratch.name == note.name and not sees_all:
        return
    note.unlink()
