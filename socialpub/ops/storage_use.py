"""What takes room on the disk: media and what was made from them, rows, wake-ups.

What rows name is counted where it changes. Versions and thumbnails are named by no row; their folders are walked
through, which takes a second for 100,000 files, and what was found counts for a while.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from socialpub.db import artifact_rows
from socialpub.media import storage_keys
from socialpub.runtime import Runtime

REMEMBERED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Everything but `media_files` in bytes."""

    media_files: int
    media_bytes: int
    renditions_bytes: int
    """Versions that were made for networks, thumbnails, and pictures of accounts."""
    database_bytes: int
    """With its journal."""
    queue_bytes: int
    free_bytes: int
    floor_bytes: int
    """What `health.disk_floor_bytes` keeps free."""
    quota_bytes: int | None = None
    """What `storage.quota` lets media take; None without a limit."""

    @property
    def used_up(self) -> float:
        """How much of the quota media take, from 0 to 1; 0 without one."""
        return self.media_bytes / self.quota_bytes if self.quota_bytes else 0.0


@dataclass(slots=True)
class WalkedFolders:
    """What the folders of versions and thumbnails held when they were last walked through."""

    size_bytes: int = 0
    again_at: float = 0.0
    """On the monotonic clock."""


def read(rt: Runtime) -> StorageUse:
    """How much there is of each. Not from the event loop."""
    files, size = artifact_rows.stored(rt.reader)
    return StorageUse(
        media_files=files,
        media_bytes=size,
        renditions_bytes=_walked(rt),
        database_bytes=_with_journals(rt.settings.database_file),
        queue_bytes=_with_journals(rt.settings.queue_file),
        free_bytes=rt.files.free_bytes(),
        floor_bytes=int(rt.settings.health.disk_floor_bytes),
        quota_bytes=rt.settings.storage.quota,
    )


def _with_journals(database: Path) -> int:
    return sum(size_of(database.with_name(database.name + end)) for end in ("", "-wal", "-shm"))


def size_of(path: Path) -> int:
    """The size of a file; of one that is not there, none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _walked(rt: Runtime) -> int:
    walked, now = rt.memory(WalkedFolders), rt.clock.monotonic()
    if now >= walked.again_at:
        root = rt.files.root
        folders = (root / storage_keys.FITTED, root / storage_keys.THUMBNAILS, rt.settings.avatars_dir)
        walked.size_bytes = sum(size for folder in folders for size in _sizes_below(folder))
        walked.again_at = now + REMEMBERED_SECONDS
    return walked.size_bytes


def _sizes_below(folder: Path | str) -> Iterator[int]:
    """The size of every file; what disappears meanwhile had none."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes_below(entry.path)
                else:
                    yield size_of(Path(entry.path))
    except FileNotFoundError:
        return
