"""The data folder: the users that may write to it, its disk use, and compacting the database file.

The service cannot write files that root creates in its data folder. Commands do not change the user themselves, because
they may need root's files. Instead, they refuse and print the command to run.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from socialpub.core import commands, units
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.settings.loader import Settings
from socialpub.db import database, upgrade
from socialpub.db.process_lock import living_processes
from socialpub.db.tables import artifact_rows
from socialpub.media import files
from socialpub.ops.health import Finding, note, ok, problem
from socialpub.runtime import Runtime


@contextmanager
def serve_alone(settings: Settings, addresses: Sequence[str] = ()) -> Iterator[None]:
    """Hold the web server lock of this data_dir. Raises OperatorError if another process holds the lock.

    The server keeps request rates and disk reservations in its memory, so there can be only one. `addresses` replace
    `listen` in the message.
    """
    if not settings.data_dir.is_dir():  # a later step reports this
        yield
        return
    settings.run_dir.mkdir(exist_ok=True, mode=0o700)
    lock = FileLock(settings.run_dir / "web.lock")
    if not lock.try_acquire():
        pid, _, address = lock.path.read_text().partition("\n")[0].partition(" ")
        where = f" (process {pid}, at {address.strip()})" if pid else ""
        raise OperatorError(
            f"socialpub is already running with {settings.data_dir}{where}.",
            "Use the running socialpub, or stop it first. A second installation needs its own data_dir and `listen`.",
        )
    lock.write(f"{os.getpid()} {' '.join(addresses or settings.listen.split(', '))}\n".encode())
    try:
        yield
    finally:
        lock.release()


def while_stopped(*words: str) -> str:
    """Return the instruction to stop the appliance, run a command and start the appliance again."""
    return f"{commands.stop()}, then run `{commands.line(*words)}`. {commands.start()}"


@contextmanager
def exclusive_data_dir(settings: Settings, why: str, remedy: str) -> Iterator[None]:
    """Lock the data folder against all other processes of this installation.

    `why` states what a running process does. Raises OperatorError while a process is running.
    """
    settings.run_dir.mkdir(exist_ok=True, mode=0o700)
    web = FileLock(settings.run_dir / "web.lock")
    # A process that starts now waits for the lock and then reads the new state.
    with upgrade.exclusive(settings.run_dir):
        try:
            if not web.try_acquire() or living_processes(settings.run_dir / "owners"):
                raise OperatorError(f"socialpub is running with {settings.data_dir}, and {why}.", remedy)
            yield
        finally:
            web.release()


# --- disk space -------------------------------------------------------------------------------------------------------

REMEMBERED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StorageUse:
    """The disk use. All fields except `media_files` are in bytes."""

    media_files: int
    media_bytes: int
    renditions_bytes: int
    """Renditions for networks, thumbnails and avatars."""
    database_bytes: int
    """Including the journal."""
    queue_bytes: int
    free_bytes: int
    floor_bytes: int
    """`health.disk_floor_bytes`, which stays free."""
    quota_bytes: int | None = None
    """`storage.quota`, or None without a limit."""

    @property
    def used_up(self) -> float:
        """The used share of the quota, or 0 without a quota."""
        return self.media_bytes / self.quota_bytes if self.quota_bytes else 0.0


def read_use(rt: Runtime) -> StorageUse:
    """Return the disk use. Do not call it on the event loop."""
    files, size = artifact_rows.stored(rt.db)
    return StorageUse(
        media_files=files,
        media_bytes=size,
        renditions_bytes=_renditions_bytes(rt),
        database_bytes=_with_journals(rt.settings.database_file),
        queue_bytes=_with_journals(rt.settings.queue_file),
        free_bytes=rt.files.free_bytes(),
        floor_bytes=int(rt.settings.health.disk_floor_bytes),
        quota_bytes=rt.settings.storage.quota,
    )


def _with_journals(database: Path) -> int:
    return sum(size_of(database.with_name(database.name + end)) for end in ("", "-wal", "-shm"))


def size_of(path: Path) -> int:
    """Return the size of a file, or 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _renditions_bytes(rt: Runtime) -> int:
    def walk() -> int:
        root = rt.files.root
        folders = (root / files.RENDITIONS, root / files.THUMBNAILS, rt.settings.avatars_dir)
        return sum(size for folder in folders for size in _sizes_below(folder))

    return rt.media.measure(rt.clock.monotonic(), REMEMBERED_SECONDS, walk)


def _sizes_below(folder: Path | str) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes_below(entry.path)
                else:
                    yield size_of(Path(entry.path))
    except FileNotFoundError:
        return


NEARLY_FULL = 0.9
MAKE_ROOM = "Raise storage.quota, or set media.keep_after_settled or retention.posts to remove files of settled posts."


def check_quota(rt: Runtime) -> Iterator[Finding]:
    quota, used = rt.settings.storage.quota, artifact_rows.stored(rt.db)[1]
    if quota is None:
        return
    use = f"Media use {units.size(used)} of {units.size(quota)} (storage.quota)"
    if used >= quota:
        yield problem("media", f"{use}. New files are refused.", MAKE_ROOM)
    elif used >= NEARLY_FULL * quota:
        yield note("media", f"{use}. New files will soon be refused.", MAKE_ROOM)
    else:
        yield ok("media", f"{use}.")


MAX_STEPS = 20


def release_free_pages(rt: Runtime) -> int:
    """Return free pages to the disk in a few small writes. Return the number of writes."""
    for step in range(MAX_STEPS):
        pages = database.read_pages(rt.db)
        if rt.stopping.is_set() or not pages.many_free:
            return step
        rt.write(lambda _, tx: database.release_pages(tx))
    return MAX_STEPS
