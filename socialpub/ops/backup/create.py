"""Creates a backup of the database and the media it names while the appliance runs."""

import errno
import fcntl
import json
import os
import secrets
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.core import commands, durable_files, logging
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, OperatorError, SocialpubError, Unavailable
from socialpub.core.locks import FileLock
from socialpub.core.settings.loader import Settings
from socialpub.db import damage
from socialpub.db.connection import Reader, Tx
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.media.files import StoredFile
from socialpub.media.reservations import DiskReservation
from socialpub.ops import file_faults
from socialpub.ops.backup import format, last_backup
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

# MERGED from ops/copies/copy_scratch.py: Where a copy is put together: a folder beside its place, which may be any

PREFIX = ".socialpub-backup-"

log = logging.get_logger("socialpub.copies")


@contextmanager
def temp_dir_in(settings: Settings, parent: Path) -> Iterator[Path]:
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


def clean_temp_dirs(settings: Settings, *, sees_all: bool) -> None:
    """Remove what processes that died have left. A service may not see every folder: what is not there for it stays
    written down, until somebody who sees all that the owner sees comes by."""
    for path in sorted(settings.run_dir.glob(f"{PREFIX}*")):
        note = FileLock(path)
        try:
            if note.try_acquire():
                _remove_temp_dir(path, sees_all)
        except OSError as error:
            log.warning("what a copy that was cut off has left cannot be removed", note=str(path), reason=str(error))
        finally:
            note.release()


def clean_temp_dirs_hourly(rt: Runtime) -> None:
    """The same from the worker."""
    clean_temp_dirs(rt.settings, sees_all=False)


def _remove_temp_dir(note: Path, sees_all: bool) -> None:
    scratch = Path(os.fsdecode(note.read_bytes()))
    if scratch.name == note.name and scratch.is_dir():  # else it died before it had made one
        shutil.rmtree(scratch)
    elif scratch.name == note.name and not sees_all:
        return
    note.unlink()


# MERGED from ops/copies/backup.py: Copies of everything, made while the appliance runs.

FORMAT = 1
DATABASE, SECRET, MEDIA = "socialpub.db", "secret.key", "media/"


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """What a copy tells about itself in its first member."""

    copied_at: str
    secret_key: str
    """The check value of the `secret.key` that the copy belongs to."""
    holds_secret: bool

    def as_json(self, **more: str) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self), **more}).encode()


class Seal(StrEnum):
    """What is known of who wrote a copy."""

    FITS = "fits"
    """Somebody who has the `secret.key` that is here."""

    OWN = "own"
    """Somebody who has the `secret.key` that it holds: whoever had the copy in hand could seal it anew."""

    UNCHECKED = "unchecked"
    """Its `secret.key` is neither here nor in it."""

    NONE = "none"
    """It has no seal, as copies of former versions, or one that somebody took away."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """A copy as it was written, or as it was found when it was read."""

    copied_at: str
    holds_secret: bool
    posts: int
    media_files: int
    media_missing: int
    """Files that the database names and that were lost already when the copy was made."""
    seal: Seal = field(default=Seal.FITS, compare=False)
    """Depends on who asks: not a fact of the copy alone."""
    moved_aside: Path | None = field(default=None, compare=False)
    """Where a restore put the empty database of a new installation."""
    valid_keys: tuple[UnrevokedKey, ...] = field(default=(), compare=False)
    """After a restore: the API keys that came with the backup and are valid again."""


def write(rt: Runtime, target: Path, *, with_secret: bool = False) -> BackupSummary:
    """Write a consistent copy to the file `target`, which may not exist yet. Publishing and the API go on meanwhile.

    Raises OperatorError. Nothing appears under the name before the copy is complete and on the disk. How it ended is
    noted (`last_copy.py`), as far as a row can be written at all.
    """
    with failure_noted(rt):
        clean_temp_dirs(rt.settings, sees_all=True)
        made = _write(rt, target, with_secret)
    note_made(rt, made)
    return made


@contextmanager
def failure_noted(rt: Runtime) -> Iterator[None]:
    """Note when the copy that is made inside fails."""
    try:
        yield
    except OperatorError as error:
        with suppress(SocialpubError):
            rt.write(last_backup.note_failed, error.message)
        raise


def note_made(rt: Runtime, made: BackupSummary, scheduled: ScheduledBackup | None = None) -> None:
    """Note a copy that lies on the disk."""
    with suppress(SocialpubError):
        rt.write(
            last_backup.note_made,
            made.copied_at,
            posts=made.posts,
            media_files=made.media_files,
            holds_secret=made.holds_secret,
            scheduled=scheduled,
        )


def _write(rt: Runtime, target: Path, with_secret: bool) -> BackupSummary:
    if os.path.lexists(target):
        raise _exists(target)
    folder = target.absolute().parent
    if not folder.is_dir():
        raise OperatorError(
            f"The folder {folder} does not exist.", f"Make it first: mkdir -p {shlex.quote(str(folder))}"
        )
    now = rt.now()  # before the instant of the database: what is read back after a restore begins there
    info = BackupInfo(stamp(now), rt.secrets.check_value, with_secret)
    with (
        failures_told(rt, target),
        _room(rt, folder) as room,
        temp_dir_in(rt.settings, folder) as scratch,
    ):
        database, unfinished = scratch / DATABASE, scratch / "copy"
        format.expect(artifact_rows.stored(rt.reader)[1])
        copy_database(rt, database)
        format.expect(database.stat().st_size)
        with format.create_tar(unfinished, rt.secrets.sign_copy) as copy, closing(sqlite3.connect(database)) as copied:
            copy.add(format.FIRST, info.as_json())
            if with_secret:
                copy.add_file(SECRET, rt.settings.secret_key_file)

            def add(key: str) -> None:
                path = rt.files.path(key)
                if room is not None:
                    room.spend(min(path.stat().st_size, room.left_bytes))
                copy.add_file(MEDIA + key, path)

            written, lost = add_media(rt, copied, Tx(copied, now), add)
            count = post_rows.count(Reader(copied))
            copied.close()
            copy.add_file(DATABASE, database)
        durable_files.move(unfinished, target)
    return BackupSummary(info.copied_at, with_secret, count, written, lost)


@contextmanager
def failures_told(rt: Runtime, target: Path) -> Iterator[None]:
    """What keeps a copy from being written, as an OperatorError that says what to do."""
    try:
        yield
    except FileExistsError:
        raise _exists(target) from None
    except Unavailable as full:
        raise OperatorError(
            f"The backup could not be written to {target}: the disk of {rt.settings.data_dir} would not keep "
            "health.disk_floor_bytes free.",
            "Write it to another disk, or make room.",
        ) from full
    except (OSError, sqlite3.Error) as error:
        if (how := damage.found_in(error)) is not None:
            raise _damaged(rt, how) from error
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The backup could not be written to {target}: {reason}."
        raise OperatorError(message, _hint(error, target)) from error


def _hint(error: Exception, target: Path) -> str:
    hint = "Check the disk and the folder's permissions, and try again."
    if getattr(error, "errno", None) != errno.EROFS:
        return hint
    fault = file_faults.read_only(target) or file_faults.read_only(target.parent)
    if not commands.is_service():
        return fault.remedy if fault else hint
    allow = shlex.join(["printf", f"[Service]\\nReadWritePaths={target}\\n"])
    file = "/etc/systemd/system/socialpub-backup.service.d/copies.conf"
    line = f"{allow} | sudo install -D -m 644 /dev/stdin {file}"
    return f"A service may write there once its unit allows it: `{line}`, then `sudo systemctl daemon-reload`."


def _exists(target: Path) -> OperatorError:
    return OperatorError(f"{target} exists already.", "Choose another name, or move the file away.")


def copy_database(rt: Runtime, target: Path) -> None:
    """The database as of this instant. Raises OperatorError when it is damaged: that is no copy."""
    timeout = rt.db.busy_seconds
    with closing(sqlite3.connect(rt.db.path, timeout=timeout)) as source, closing(sqlite3.connect(target)) as copied:
        # In one go, which is one read transaction: between two steps SQLite would start over at every write.
        source.backup(copied)
        copied.execute("PRAGMA journal_mode = delete")
        result = copied.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise _damaged(rt, result)


def _damaged(rt: Runtime, how: str) -> OperatorError:
    fault = file_faults.damaged(how, rt.settings)
    return OperatorError(f"{fault.message} No backup of it was kept.", fault.remedy)


def rows_bytes(rt: Runtime) -> int:
    """About how large a copy of the database will be."""
    database = rt.settings.database_file
    journal = database.with_name(f"{database.name}-wal")
    return sum(path.stat().st_size for path in (database, journal) if path.exists())


def on_the_disk_of_media(rt: Runtime, folder: Path) -> bool:
    """Whether what is written into this folder takes room from uploads and rows."""
    return folder.stat().st_dev == rt.files.root.stat().st_dev


def _room(rt: Runtime, folder: Path) -> AbstractContextManager[DiskReservation | None]:
    """Room for a copy in this folder beside uploads and rows; None on another disk than theirs. Raises Unavailable."""
    if not on_the_disk_of_media(rt, folder):
        return nullcontext()
    # The rows are there twice while the copy is made.
    return rt.files.reservations.reserve(artifact_rows.stored(rt.reader)[1] + 2 * rows_bytes(rt))


def add_media(rt: Runtime, copied: sqlite3.Connection, tx: Tx, add: Callable[[str], None]) -> tuple[int, int]:
    """Every file that the copied database names, through `add`, which raises FileNotFoundError for one that is not
    there; how many were written, and how many were lost before."""
    written = lost = 0
    removed = []
    for key in artifact_rows.storage_keys(Reader(copied)):
        try:
            add(key)
            written += 1
        except FileNotFoundError:
            if artifact_rows.named_among(rt.reader, [key]):
                lost += 1
            else:
                removed.append(key)  # since the instant of the copy
    with copied:
        # What an open post of the copy needs stays named: its delivery will say which file it lacks.
        lost += sum(not artifact_rows.note_removed(tx, key) for key in removed)
    return written, lost


# MERGED from ops/copies/copy_download.py: A copy for somebody who takes it away at once: made beside the data, and

FOLDER = "copies"
_LOCK = "lock"


def make_download(rt: Runtime) -> StoredFile:
    """A copy without secret.key, opened. Takes as long as the media are large; not from the event loop.

    Raises OperatorError when it cannot be made, and Conflict while another one is being made.
    """
    folder = rt.settings.data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    with _exclusive_download(folder):
        _clear_downloads(folder)
        target = folder / secrets.token_hex(8)
        try:
            write(rt, target)
            return StoredFile(target)
        finally:
            _clear_downloads(folder)


def clean_downloads(rt: Runtime) -> None:
    """Remove what a process that died has left behind, unless a copy is being made."""
    folder = rt.settings.data_dir / FOLDER
    if folder.is_dir():
        with suppress(Conflict), _exclusive_download(folder):
            _clear_downloads(folder)


@contextmanager
def _exclusive_download(folder: Path) -> Iterator[None]:
    """Raises Conflict when somebody makes a copy here, in whichever process."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("A backup is being made already. Wait until its download begins.") from None
        yield
    finally:
        os.close(fd)


def _clear_downloads(folder: Path) -> None:
    """Everything but the lock, under it."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
