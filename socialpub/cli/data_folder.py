"""Who may work in a data folder: the user that owns it, and one web server."""

import os
import pwd
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.settings.loader import Settings

# MERGED from cli/file_owner.py: Root does not work in another user's data folder: what it left there, the service


class WrongUser(OperatorError):
    """This must be run as somebody else."""


def refuse_root(settings: Settings) -> None:
    """Raises WrongUser when this is root and the data folder, or where it would be made, is another user's."""
    if os.geteuid() != 0:
        return
    folder = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    uid = folder.stat().st_uid
    if uid == 0:
        return
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"#{uid}"
    raise WrongUser(
        f"{folder} belongs to {user}, who could not write what root leaves there.",
        f"Run it as that user: {commands.this_line_as(user, settings.config_file)}",
    )


# MERGED from cli/web_lock.py: One web server for a data folder: a second one is refused before it touches anything


@contextmanager
def serve_alone(settings: Settings, addresses: Sequence[str] = ()) -> Iterator[None]:
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
