"""A copy restored: into an empty `data_dir`, and paused, since the original may have gone on.

Everything is unpacked and checked beside its place first. The database comes last: with it the installation is there,
and whatever fails before leaves nothing behind. The database of a new installation, which has no profile, post or key
yet, is moved aside.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.core import actor, commands, durable_files
from socialpub.core.clock import Clock, stamp
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.tables import artifact_rows, audit_log, holds, post_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.media import files
from socialpub.ops import file_faults, storage
from socialpub.ops.backup import verify
from socialpub.ops.backup.create import DATABASE, SECRET, BackupInfo, BackupSummary
from socialpub.ops.notify import schedule
from socialpub.runtime import Runtime

SCRATCH = ".restore-"
"""How the name of the folder begins in which it works."""


def restore(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> BackupSummary:
    """Put a copy into the `data_dir` of these settings, paused. Raises OperatorError and leaves nothing half-made.

    Where its `secret.key` lies there, its seal must fit it; `unsealed` accepts a copy that has none. A database alone
    is put beside the media that lie there already, whoever has brought them back.
    """
    is_database = verify.is_database(source)
    with _new_database_aside(settings, clock) as aside:
        _refuse_existing(settings, aside, media_may_be_there=is_database)
        summary = _restore(source, settings, clock, aside, unsealed=unsealed, is_database=is_database)
    return replace(summary, moved_aside=aside)


def _restore(
    source: Path, settings: Settings, clock: Clock, aside: Path | None, *, unsealed: bool, is_database: bool
) -> BackupSummary:
    ours = crypto.load(settings.secret_key_file) if os.path.lexists(settings.secret_key_file) else None
    with verify.open_backup(source, ours, unsealed=unsealed) as copy:
        info = copy.info
        _check_secret(settings, info, ours)
        try:
            with _make_temp_dir(settings.data_dir) as scratch:
                summary = verify.unpack(copy, scratch, media=True)
                pause(scratch / DATABASE, min(info.copied_at, stamp(clock.now())), clock)
                _forget_original(scratch / DATABASE, info.copied_at, clock, is_backup=not is_database)
                summary = replace(summary, valid_keys=mark_keys(scratch / DATABASE, clock))
                if is_database:
                    summary = _with_media_found(summary, settings, scratch / DATABASE)
                _move_into_place(settings, scratch, aside, keep_media=is_database)
        except FileExistsError as error:
            raise _exists(Path(error.filename2 or error.filename)) from error
        except OSError as error:
            message = f"The backup could not be put into {settings.data_dir}: {error.strerror}."
            raise OperatorError(message, "Check the disk and who owns the folder, and try again.") from error
    return summary


def clean(rt: Runtime) -> None:
    """Remove what a restore that was killed has left: it may hold a secret.key. None can be under way where an
    appliance works."""
    for scratch in rt.settings.data_dir.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _exists(path: Path) -> OperatorError:
    return OperatorError(f"{path} exists already, and nothing is overwritten.", "Restore into an empty data_dir.")


@contextmanager
def _new_database_aside(settings: Settings, clock: Clock) -> Iterator[Path | None]:
    """Keep processes away from the database of a new installation. Yield the name that it gets, None without one."""
    database = settings.database_file
    if not _is_new(database):
        yield None
        return
    with storage.exclusive_data_dir(
        settings, "works with the database there", f"{commands.stop()}, then restore the backup."
    ):
        if not _is_new(database):
            raise _exists(database)
        with closing(sqlite3.connect(database)) as connection:
            # Its journal would be taken for that of the restored database.
            connection.execute("PRAGMA journal_mode = delete")
        instant = stamp(clock.now()).replace(":", "").replace("-", "")
        yield database.with_name(f"{database.name}.new-{instant}")


def _is_new(database: Path) -> bool:
    """Whether this is a database with no profile, no post, no API key and no media."""
    if not database.exists():
        return False
    address = f"file:{quote(str(database.absolute()))}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = Row
            reader = Reader(connection)
            found = (post_rows.count(reader), profile_rows.list_all(reader), api_keys.list_all(reader))
            return not any(found) and next(iter(artifact_rows.storage_keys(reader)), None) is None
    except sqlite3.Error:
        return False


def _refuse_existing(settings: Settings, aside: Path | None, *, media_may_be_there: bool) -> None:
    database = settings.database_file
    # SQLite would take what is left of another database's journal for the restored one's.
    for path in (
        *([] if aside else [database]),
        *(database.with_name(database.name + end) for end in ("-wal", "-shm", "-journal")),
    ):
        if os.path.lexists(path):
            raise _exists(path)
    media = settings.media_dir
    if media_may_be_there:
        return
    if os.path.lexists(media) and (not media.is_dir() or any(not path.is_dir() for path in media.rglob("*"))):
        raise _exists(media)


def _check_secret(settings: Settings, info: BackupInfo, ours: Secrets | None) -> None:
    """The `secret.key` that is there, or the copy's own, must be the one that the copy belongs to."""
    key_file = settings.secret_key_file
    if ours is not None:
        if ours.check_value != info.secret_key:
            raise OperatorError(
                f"The backup belongs to another secret.key than {key_file}.",
                f"The backup holds its own. To make way for it, {_line('mv', key_file, f'{key_file}.new')}."
                if info.holds_secret
                else _put_key(key_file),
            )
    elif not info.holds_secret:
        raise OperatorError(
            f"The backup does not contain secret.key, and {key_file} does not exist.",
            _put_key(key_file),
        )


def _put_key(key_file: Path) -> str:
    folder = next(path for path in key_file.parents if path.exists())
    own = f"--owner={file_faults.user_name(folder.stat().st_uid)}"
    return (
        "Put the original's secret.key there; without it no stored token can be read. If it is in FILE, "
        f"{_line('install', own, '--mode=600', 'FILE', key_file)}."
    )


def _line(*words: str | Path) -> str:
    return f"run `{commands.system_line(*map(str, words), stopped=True)}`"


@contextmanager
def _make_temp_dir(data_dir: Path) -> Iterator[Path]:
    """A folder to work in, on the disk of `data_dir`. When this fails, what it made is taken away again."""
    with ExitStack() as undo:
        for path in reversed([path for path in (data_dir, *data_dir.parents) if not path.exists()]):
            path.mkdir(mode=0o700 if path == data_dir else 0o777)
            undo.callback(_remove_if_empty, path)
        scratch = Path(tempfile.mkdtemp(dir=data_dir, prefix=SCRATCH))
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        yield scratch
        undo.pop_all()
    shutil.rmtree(scratch, ignore_errors=True)


def _with_media_found(summary: BackupSummary, settings: Settings, database: Path) -> BackupSummary:
    """What lies in the media folder of all that the database names."""
    found = lost = 0
    with closing(sqlite3.connect(database)) as connection:
        for key in artifact_rows.storage_keys(Reader(connection)):
            there = files.file_path(settings.media_dir, key).is_file()
            found, lost = found + there, lost + (not there)
    return replace(summary, media_files=found, media_missing=lost)


def _move_into_place(settings: Settings, scratch: Path, aside: Path | None, *, keep_media: bool) -> None:
    (scratch / "media").mkdir(exist_ok=True, mode=0o700)
    os.sync()  # the names may not reach the disk before what they name
    with ExitStack() as undo:
        if not os.path.lexists(settings.secret_key_file):
            durable_files.move(scratch / SECRET, settings.secret_key_file)
            undo.callback(settings.secret_key_file.unlink)
        if not (keep_media and settings.media_dir.exists()):
            if settings.media_dir.exists():
                _remove_empty(settings.media_dir)
            (scratch / "media").rename(settings.media_dir)
            undo.callback(shutil.rmtree, settings.media_dir, ignore_errors=True)
        if aside is not None:
            settings.database_file.rename(aside)
            undo.callback(aside.rename, settings.database_file)
        durable_files.move(scratch / DATABASE, settings.database_file)
        undo.pop_all()


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _remove_empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()
    folder.rmdir()


def pause(database: Path, copied_at: str, clock: Clock) -> None:
    """Have a database of former times publish nothing until its owner says so."""
    with closing(sqlite3.connect(database)) as connection, connection:
        tx = Tx(connection, clock.now(), actor.current())
        if audit_log.exists(tx):  # else the migration that brings it notes this
            audit_log.record(tx, AuditAction.PUBLISHING_RESTORED, copied_at=copied_at)
        appliance_state.put(connection, appliance_state.PAUSED_AT, tx.stamp)
        appliance_state.note_restore(tx, copied_at)
        # No worker and no look at readiness have been here yet.
        appliance_state.remove(connection, appliance_state.HEARTBEAT)
        appliance_state.remove(connection, appliance_state.READINESS)
        # The proxies of the original are not those of this machine.
        appliance_state.remove(connection, appliance_state.UNTRUSTED_PROXIES)
        # It lies where the original is, perhaps on another machine.
        appliance_state.remove(connection, appliance_state.SCHEDULED_BACKUP)
        # The original has it, and may still run.
        appliance_state.remove(connection, appliance_state.INSTANCE_ID)
        schedule.forget_original(tx)


def _forget_original(database: Path, copied_at: str, clock: Clock, *, is_backup: bool) -> None:
    """Leave to the original what it met: its failures, its machine, and the networks that refused it."""
    with closing(sqlite3.connect(database)) as connection, connection:
        tx = Tx(connection, clock.now(), actor.current())
        appliance_state.put(tx, appliance_state.ORIGINAL_UNTIL, copied_at)
        if is_backup:  # the last one that is known here
            appliance_state.put(tx, appliance_state.BACKED_UP_AT, copied_at)
        for name in (
            appliance_state.BACKUP_FAILED_AT,
            appliance_state.BACKUP_FAILURE,
            appliance_state.WORKER,
            appliance_state.WORKER_AWAY,
            appliance_state.WORKER_ENDED_AT,
            appliance_state.HOUSEKEPT_AT,
        ):
            appliance_state.remove(tx, name)
        holds.forget_all(tx)


def mark_keys(database: Path, clock: Clock) -> tuple[UnrevokedKey, ...]:
    """Record which API keys came with the backup, and return the valid ones."""
    with closing(sqlite3.connect(database)) as connection, connection:
        tx = Tx(connection, clock.now(), actor.current())
        api_keys.mark_restored(tx)
        return tuple(api_keys.list_undecided(tx, tx.stamp))
