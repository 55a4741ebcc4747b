"""One web server for a data folder: a second one is refused before it touches anything.

What limits callers (request rates, the room promised to uploads) lies in the memory of the one that serves. A second
worker does no harm: every row names the process that has it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db.locks import FileLock


@contextmanager
def held(settings: Settings, addresses: Sequence[str] = ()) -> Iterator[None]:
    """Be the one that serves this data_dir, at `listen` or at other `addresses`. Raises OperatorError when another
    process is."""
    if not settings.data_dir.is_dir():  # which is found out, and told, a moment later
        yield
        return
    settings.run_dir.mkdir(exist_ok=True, mode=0o700)
    lock = FileLock(settings.run_dir / "web.lock")
    if not lock.try_acquire():
        raise _already_served(settings, lock)
    lock.write(f"{os.getpid()} {' '.join(addresses) or settings.listen}\n".encode())
    try:
        yield
    finally:
        lock.release()


def _already_served(settings: Settings, lock: FileLock) -> OperatorError:
    pid, _, address = lock.path.read_text().partition("\n")[0].partition(" ")
    where = f" (process {pid}, at {address.strip()})" if pid else ""
    return OperatorError(
        f"socialpub already runs with {settings.data_dir}{where}.",
        "Use that one, or stop it first. A second installation needs a data_dir and a `listen` of its own.",
    )
