"""A database file alone, as a continuous replica (Litestream) brings it back: read as a copy without media and seal.

Nobody noted the instant that it is of. What is known is the last thing that was written into it: the worker reports
every few seconds, and whatever the original did later is looked for on the accounts from then on.
"""

import io
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state, post_rows
from socialpub.db.transaction import Reader
from socialpub.ops.copies import archive
from socialpub.ops.copies.archive import CheckedArchive, InvalidArchive, Member
from socialpub.ops.copies.backup import DATABASE, BackupInfo

_BEGINNING = b"SQLite format 3\0"
_NEVER = "1970-01-01T00:00:00.000Z"


def is_one(path: Path) -> bool:
    """Whether this file is a database rather than a copy."""
    try:
        with archive.open_regular(path, follow=True) as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


@contextmanager
def checked(path: Path) -> Iterator[CheckedArchive]:
    """A database that nobody has open. Raises InvalidArchive, OperatorError."""
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        raise OperatorError(
            f"{path} has a journal beside it: it belongs to an appliance that runs or was cut off. It is not a backup.",
            f"Make a backup with `{commands.line('backup', 'FILE')}`, or restore one from the replica with "
            "`litestream restore`.",
        )
    info = _info(path)
    yield CheckedArchive(path, "", None, partial(_members, path, info))


def _members(path: Path, info: BackupInfo) -> Iterator[Member]:
    told = info.as_json()
    yield Member(io.BytesIO(told), archive.FIRST, len(told))
    with path.open("rb") as file:
        yield Member(file, DATABASE, os.fstat(file.fileno()).st_size)


def _info(path: Path) -> BackupInfo:
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            reader = Reader(database)
            secret_key = appliance_state.get(reader, appliance_state.SECRET_KEY)
            written = (appliance_state.get(reader, appliance_state.HEARTBEAT), post_rows.newest_created_at(reader))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise OperatorError(f"The database in {path} cannot be read: {error}.", "Use another backup.") from error
    if secret_key is None:
        raise InvalidArchive(f"{path} is not a database that socialpub made.", archive.use_ours())
    return BackupInfo(max((at for at in written if at is not None), default=_NEVER), secret_key, False)
