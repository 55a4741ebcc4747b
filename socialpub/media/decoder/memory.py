"""The memory for decoding: all processes together decode one large file and a few ordinary files at a time.

A reservation is a locked file. The child that decodes inherits it, so it ends with the child.
"""

import asyncio
import os
import time
from pathlib import Path

from socialpub.core import machine
from socialpub.core.locks import LockTimeout, open_locked

MEMORY_BYTES = 2048 * 1024 * 1024
"""Address space of the child. Measured: 100 megapixels need up to 0.75 GiB as PNG, GIF or baseline JPEG, 1.25 GiB as
progressive JPEG, and 1.75 GiB as WebP. An ordinary photo needs 0.1 GiB."""
ORDINARY_BYTES = 256 * 1024 * 1024
"""The maximum memory for an ordinary photo or a video."""
POLL_SECONDS = 0.02
"""The pause between two tries, because a blocking flock does not have a timeout. Decoding takes much longer."""


class MemoryBudget:
    """Half of `budget_bytes` is for ordinary files, the other half for one large file, which always fits."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self._ordinary = [f"{number:03}.slot" for number in range(max(1, budget_bytes // ORDINARY_BYTES // 2))]

    def try_reserve(self, needed_bytes: int) -> int | None:
        """Return the descriptor of a locked file, or None if all are in use. Close the descriptor to release it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = self._ordinary if needed_bytes <= ORDINARY_BYTES else ["large.slot"]
        descriptors = (open_locked(self.folder / name) for name in names)
        return next((descriptor for descriptor in descriptors if descriptor is not None), None)

    async def reserve(self, needed_bytes: int, timeout_seconds: float) -> int:
        """Wait for a reservation. Raise LockTimeout or OSError. A canceled call does not keep one."""
        give_up_at = time.monotonic() + timeout_seconds
        while (descriptor := self.try_reserve(needed_bytes)) is None:
            if time.monotonic() >= give_up_at:
                raise LockTimeout("Other images and videos use all memory for decoding.")
            await asyncio.sleep(POLL_SECONDS)
        return descriptor


budget: MemoryBudget | None = None


def share_memory_in(folder: Path) -> None:
    """Share a budget with all processes that use this folder: half of the machine's memory, within reason."""
    global budget
    budget = MemoryBudget(folder, min(machine.memory_bytes() // 2, (os.cpu_count() or 1) * MEMORY_BYTES))
