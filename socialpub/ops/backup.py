"""Copies of everything, taken while the appliance runs.

A copy holds the database as of one instant and the media that it names. What was removed between that instant and the
moment its turn came is written down in the copied database as removed: a copy never names what it does not hold, but
for files that were lost before.
"""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from socialpub.core import crypto, durable_files
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state, migrate
from socialpub.db.database import Reader
from socialpub.media import files
from socialpub.ops import archive
from socialpub.ops.archive import Archive, Unsound
from socialpub.runtime import Runtime

FORMAT = 1
DATABASE, SECRET, MEDIA = "socialpub.db", "secret.key", "media/"
_PIECE = 1 << 20
_LONGEST_INFO = 64 * 1024
_NAMED = "SELECT storage_key FROM artifact WHERE storage_key IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Info:
    """What a copy says about itself before anything else."""

    copied_at: str
    secret_key: str
    """The check value of the `secret.key` that the copy belongs to."""
    holds_secret: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy as it was written, or as it was found when it was read."""

    copied_at: str
    holds_secret: bool
    posts: int
    media_files: int
    media_missing: int
    """Files that the database names and that were lost already when the copy was made."""


# --- writing ---------------------------------------------------------------------------------------------------------


def write(rt: Runtime, target: Path, *, with_secret: bool = False) -> Copy:
    """Write a consistent copy to `target`, which may not exist yet. Publishing and the API go on meanwhile.

    Raises OperatorError. Nothing appears under the name before the copy is whole and on the disk.
    """
    if os.path.lexists(target):
        raise _exists(target)
    copied_at = rt.stamp()  # before the instant of the database: what is read back begins there
    info = {"format": FORMAT, "copied_at": copied_at, "secret_key": rt.secrets.check_value, "holds_secret": with_secret}
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".socialpub-backup-") as scratch:
            database, unfinished = Path(scratch, DATABASE), Path(scratch, "copy")
            _copy_database(rt, database)
            with archive.create(unfinished) as copy, closing(sqlite3.connect(database)) as copied:
                copy.add(archive.FIRST, json.dumps(info).encode())
                if with_secret:
                    copy.add_file(SECRET, rt.settings.secret_key_file)
                written, lost = _add_media(rt, copy, copied, copied_at)
                posts = int(copied.execute("SELECT count(*) FROM post").fetchone()[0])
                copied.close()
                copy.add_file(DATABASE, database)
            durable_files.move(unfinished, target)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The copy could not be written to {target}: {reason}."
        raise OperatorError(message, "Look at the disk and try again.") from error
    return Copy(copied_at, with_secret, posts, written, lost)


def _exists(target: Path) -> OperatorError:
    return OperatorError(f"{target} exists already.", "Choose another name, or move the file away.")


def _copy_database(rt: Runtime, target: Path) -> None:
    patience = rt.db.busy_seconds
    with closing(sqlite3.connect(rt.db.path, timeout=patience)) as source, closing(sqlite3.connect(target)) as copied:
        # In one go, which is one read transaction: between two steps SQLite would start over at every write.
        source.backup(copied)
        copied.execute("PRAGMA journal_mode = delete")


def _add_media(rt: Runtime, copy: Archive, copied: sqlite3.Connection, copied_at: str) -> tuple[int, int]:
    """Every file that the copied database names; how many were written, and how many were lost before."""
    written = lost = 0
    removed = []
    for (key,) in copied.execute(f"{_NAMED} ORDER BY id"):
        try:
            copy.add_file(MEDIA + key, rt.files.path(key))
            written += 1
        except FileNotFoundError:
            if rt.reader.value("SELECT 1 FROM artifact WHERE storage_key = ?", (key,)):
                lost += 1
            else:
                removed.append(key)  # since the instant of the copy
    with copied:
        noted = copied.executemany(
            """UPDATE artifact SET storage_key = NULL,
                removed_at = CASE status WHEN 'verified' THEN ? ELSE removed_at END,
                stored_generation = CASE status WHEN 'reserved' THEN NULL ELSE stored_generation END,
                etag = CASE status WHEN 'reserved' THEN NULL ELSE etag END
                WHERE storage_key = ? AND NOT EXISTS (SELECT 1 FROM media m JOIN post p ON p.id = m.post_id
                    WHERE m.artifact_id = artifact.id AND p.status IN ('pending', 'scheduled'))""",
            [(copied_at, key) for key in removed],
        )
    # What an open post of the copy needs stays named: its delivery will say which file it lacks.
    return written, lost + len(removed) - max(noted.rowcount, 0)


# --- reading ---------------------------------------------------------------------------------------------------------


def verify(source: Path) -> Copy:
    """Read a copy to its end: every byte is as it was written, and the database is sound. Raises OperatorError."""
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    with (
        opened(source) as (file, info),
        tempfile.TemporaryDirectory(dir=beside, prefix=".socialpub-verify-") as scratch,
    ):
        try:
            return unpack(source, file, info, Path(scratch), media=False)
        except OSError as error:
            raise OperatorError(
                f"The copy could not be read through: {error.strerror}.", "Look at the disk."
            ) from error


@contextmanager
def opened(source: Path) -> Iterator[tuple[IO[bytes], Info]]:
    """A copy that is what was written, and what it says about itself. Raises OperatorError."""
    with archive.opened(source) as file:
        with closing(archive.members(source, file)) as members:
            name, content = next(members, (None, None))
            if name != archive.FIRST or content is None:
                raise _foreign(source, "it does not say what it is")
            info = _read_info(source, content.read(_LONGEST_INFO))
        yield file, info


def unpack(source: Path, file: IO[bytes], info: Info, scratch: Path, *, media: bool) -> Copy:
    """Unpack into `scratch`, which must be empty: the database, `secret.key` and, if wanted, the media.

    Raises OperatorError for what a copy cannot hold, and when the database is not sound or names another `secret.key`.
    """
    database = scratch / DATABASE
    expected = {archive.FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    with closing(sqlite3.connect(scratch / "present.db", isolation_level=None)) as present:
        present.executescript("PRAGMA synchronous = off; CREATE TABLE present (name TEXT PRIMARY KEY) WITHOUT ROWID")
        present.execute("BEGIN")
        for name, content in archive.members(source, file):
            key = name.removeprefix(MEDIA)
            if name in expected:
                expected.discard(name)
                if name != archive.FIRST:
                    _unpack(content, scratch / name)
            elif key == name or not files.is_key(key) or not _note(present, key):
                raise _foreign(source, f"it holds {name!r}")
            elif media:
                _unpack(content, scratch / name)
        present.execute("COMMIT")
        if expected:
            raise _foreign(source, f"it lacks {', '.join(sorted(expected))}")
        _check_database(source, database, info)
        if info.holds_secret:
            _check_secret(source, scratch / SECRET, info)
        copy = _count(source, present, database, info)
    (scratch / "present.db").unlink()
    return copy


def _foreign(source: Path, why: str) -> Unsound:
    return Unsound(f"{source} is no copy that socialpub made: {why}.", "Use a file that `socialpub backup` wrote.")


def _read_info(source: Path, text: bytes) -> Info:
    try:
        told: Any = json.loads(text)
        newer = isinstance(told["format"], int) and told["format"] > FORMAT
        info = Info(str(told["copied_at"]), str(told["secret_key"]), bool(told["holds_secret"]))
    except (ValueError, TypeError, KeyError):
        raise _foreign(source, "it does not say what it is") from None
    if newer:
        raise OperatorError(f"{source} was made by a newer socialpub.", "Use that version to read it.")
    return info


def _note(present: sqlite3.Connection, key: str) -> bool:
    """False when a file of this name came before."""
    return present.execute("INSERT OR IGNORE INTO present VALUES (?)", (key,)).rowcount == 1


def _unpack(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with durable_files.create(target) as file:
        shutil.copyfileobj(content, file, _PIECE)


def _check_database(source: Path, database: Path, info: Info) -> None:
    try:
        with closing(sqlite3.connect(database)) as connection:
            sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            unknown = migrate.unknown(row[0] for row in connection.execute("SELECT name FROM schema_migration"))
            bound = appliance_state.get(Reader(connection), appliance_state.SECRET_KEY)
    except sqlite3.Error as error:
        raise OperatorError(f"The database in {source} cannot be read: {error}.", "Use another copy.") from error
    if sound != "ok":
        raise OperatorError(f"The database in {source} is damaged: {sound}.", "Use another copy.")
    if unknown:
        raise OperatorError(
            f"The database in {source} was made by a newer socialpub (it has {', '.join(unknown)}, unknown here).",
            "Use that version to restore it.",
        )
    if bound != info.secret_key:
        raise _foreign(source, "its database belongs to another secret.key than it says")


def _check_secret(source: Path, key_file: Path, info: Info) -> None:
    try:
        matches = crypto.load(key_file).check_value == info.secret_key
    except OperatorError:
        matches = False
    if not matches:
        raise _foreign(source, "its secret.key is another one than its database's")


def _count(source: Path, present: sqlite3.Connection, database: Path, info: Info) -> Copy:
    present.execute("ATTACH ? AS copied", (str(database),))
    foreign = present.execute(f"SELECT name FROM present EXCEPT {_NAMED.replace('FROM ', 'FROM copied.')}").fetchone()
    if foreign is not None:
        raise _foreign(source, f"it holds {foreign[0]!r}, which its database does not name")
    posts, named, held = present.execute(
        f"""SELECT (SELECT count(*) FROM copied.post), (SELECT count(*) FROM ({_NAMED})),
            (SELECT count(*) FROM present)"""
    ).fetchone()
    present.execute("DETACH copied")
    return Copy(info.copied_at, info.holds_secret, posts, held, named - held)
