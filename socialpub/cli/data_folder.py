"""Who may work in a data folder: the user that owns it, and one web server.

The service could not write files that root leaves in its data folder. Commands do not change the user themselves: they
cannot know which of root's files they would need. A refusal shows the command to run instead.
"""

import os
import pwd
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.settings.loader import Settings


class WrongUser(OperatorError):
    """Another user must run this."""


def refuse_root(settings: Settings) -> None:
    """Raise WrongUser if this is root, and the data folder or its parent belongs to another user."""
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


@contextmanager
def serve_alone(settings: Settings, addresses: Sequence[str] = ()) -> Iterator[None]:
    """Hold the lock of the one web server of this data_dir. Raise OperatorError if another process has it.

    Its memory contains request rates and disk reservations. `addresses` replace `listen` in the message.
    """
    if not settings.data_dir.is_dir():  # a later step reports this
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
