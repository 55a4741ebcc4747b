"""Restoring a backup into an empty `data_dir`.

The restored installation is paused, since the original installation may still be running.

The backup is unpacked and checked in a temporary folder first. The database is moved into place last: an earlier
failure leaves nothing behind. The database of a new installation without profiles, posts and keys is renamed.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from socialpub.accounts import api_keys
from socialpub.core import actor, commands, durable_files, progress
from socialpub.core.clock import Clock, stamp
from socialpub.core.errors import OperatorError, reason_for
from socialpub.core.machine import user_name
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.connection import Database, open_file
from socialpub.db.models import ApiKeyRow
from socialpub.db.tables import artifact_rows, audit_log, post_rows, profile_rows, waits
from socialpub.db.tables.audit_log import AuditAction
from socialpub.media import files
from socialpub.ops import storage
from socialpub.ops.backup import verify
from socialpub.ops.backup.format import DATABASE, SECRET, BackupInfo, BackupSummary
from socialpub.ops.notify import schedule
from socialpub.runtime import Runtime

TEMP_DIR = ".restore-"
"""The prefix of the temporary folder."""


def restore(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> BackupSummary:
    """Restore a backup, paused. Raises OperatorError and leaves nothing behind.

    If the `secret.key` of the backup is in place, the signature must be valid. `unsealed` accepts an unsigned backup. A
    database alone is put beside the existing media.
    """
    is_database = verify.is_database(source)
    with _new_database_aside(settings, clock) as aside:
        _refuse_existing(settings, aside, media_may_be_there=is_database)
        ours = crypto.load(settings.secret_key_file) if os.path.lexists(settings.secret_key_file) else None
        with verify.open_backup(source, ours, unsealed=unsealed) as backup:
            _check_secret(settings, backup.info, ours)
            with installing(source, settings) as temp_dir:
                summary = verify.unpack(backup, temp_dir, media=True)
                database, copied_at = temp_dir / DATABASE, summary.copied_at
                pause(database, min(copied_at, stamp(clock.now())), clock)
                _forget_original(database, copied_at, clock, is_backup=not is_database)
                summary = replace(summary, valid_keys=mark_keys(database, clock), moved_aside=aside)
                if is_database:
                    lost = count_missing_media(settings, database)
                    summary = replace(summary, media_files=summary.media_missing - lost, media_missing=lost)
                _move_into_place(settings, temp_dir, aside, keep_media=is_database)
    return summary


@contextmanager
def installing(source: Path, settings: Settings) -> Iterator[Path]:
    """Work in a temporary folder of `data_dir`. Raises OperatorError for a failure, and leaves nothing behind."""
    try:
        with _make_temp_dir(settings.data_dir) as temp_dir:
            yield temp_dir
    except FileExistsError as error:
        raise _exists(Path(error.filename2 or error.filename)) from error
    except (OSError, sqlite3.Error) as error:
        raise OperatorError(
            f"{source} could not be put into {settings.data_dir}: {reason_for(error)}.",
            "Nothing was changed. Check the disk and the owner of the folder, and try again.",
        ) from error


def remove_temp_dirs(rt: Runtime) -> None:
    """Remove the leftovers of a killed restore, which may contain a `secret.key`."""
    for temp_dir in rt.settings.data_dir.glob(f"{TEMP_DIR}*"):
        shutil.rmtree(temp_dir, ignore_errors=True)


def _exists(path: Path) -> OperatorError:
    return OperatorError(f"{path} already exists and is not overwritten.", "Restore into an empty data_dir.")


@contextmanager
def _new_database_aside(settings: Settings, clock: Clock) -> Iterator[Path | None]:
    """Keep processes from the database of a new installation. Yield its new name, or None without such a database."""
    database = settings.database_file
    if not _is_new(database):
        yield None
        return
    with storage.exclusive_data_dir(settings, "uses the database", f"{commands.stop()}, then restore the backup."):
        if not _is_new(database):
            raise _exists(database)
        with closing(sqlite3.connect(database)) as connection:
            # SQLite would apply its journal to the restored database.
            connection.execute("PRAGMA journal_mode = delete")
        instant = stamp(clock.now()).replace(":", "").replace("-", "")
        yield database.with_name(f"{database.name}.new-{instant}")


def _is_new(database: Path) -> bool:
    """Return whether the database exists and has no profile, post, API key or media."""
    if not database.exists():
        return False
    try:
        with open_file(database, "rw") as reader:
            profiles, keys = profile_rows.count_by_provider_and_status(reader), api_keys.list_all(reader)
            found = (post_rows.count(reader), profiles, keys, next(iter(artifact_rows.storage_keys(reader)), None))
            return not any(found)
    except sqlite3.Error:
        return False


def _refuse_existing(settings: Settings, aside: Path | None, *, media_may_be_there: bool) -> None:
    database = settings.database_file
    # SQLite would apply the journal of another database to the restored one.
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
    key_file = settings.secret_key_file
    if ours is not None:
        if ours.check_value != info.secret_key:
            raise OperatorError(
                f"The backup belongs to another secret.key than {key_file}.",
                f"The backup contains its own secret.key. To move the other key away, "
                f"{_line('mv', key_file, f'{key_file}.new')}."
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
    own = f"--owner={user_name(folder.stat().st_uid)}"
    return (
        "Put the secret.key of the original installation in place: without this key, stored tokens cannot be read. "
        f"If the key is in FILE, "
        f"{_line('install', own, '--mode=600', 'FILE', key_file)}."
    )


def _line(*words: str | Path) -> str:
    return f"run `{commands.system_line(*map(str, words))}`"


@contextmanager
def _make_temp_dir(data_dir: Path) -> Iterator[Path]:
    """Create a folder in `data_dir`. After a failure, remove every folder that this function created."""
    with ExitStack() as undo:
        for path in reversed([path for path in (data_dir, *data_dir.parents) if not path.exists()]):
            path.mkdir(mode=0o700 if path == data_dir else 0o777)
            undo.callback(_remove_if_empty, path)
        temp_dir = Path(tempfile.mkdtemp(dir=data_dir, prefix=TEMP_DIR))
        undo.callback(shutil.rmtree, temp_dir, ignore_errors=True)
        yield temp_dir
        undo.pop_all()
    shutil.rmtree(temp_dir, ignore_errors=True)


def count_missing_media(settings: Settings, database: Path) -> int:
    """Return the number of a database's files that are missing in the media folder."""
    with open_file(database, "rw") as reader:
        keys = artifact_rows.storage_keys(reader)
        return sum(not files.file_path(settings.media_dir, key).is_file() for key in keys)


def _move_into_place(settings: Settings, temp_dir: Path, aside: Path | None, *, keep_media: bool) -> None:
    (temp_dir / "media").mkdir(exist_ok=True, mode=0o700)
    progress.begin("Waiting for the disk")
    os.sync()  # the names must not reach the disk before the contents
    with ExitStack() as undo:
        if not os.path.lexists(settings.secret_key_file):
            durable_files.move(temp_dir / SECRET, settings.secret_key_file)
            undo.callback(settings.secret_key_file.unlink)
        if not (keep_media and settings.media_dir.exists()):
            if settings.media_dir.exists():
                _remove_empty(settings.media_dir)
            (temp_dir / "media").rename(settings.media_dir)
            undo.callback(shutil.rmtree, settings.media_dir, ignore_errors=True)
        if aside is not None:
            settings.database_file.rename(aside)
            undo.callback(aside.rename, settings.database_file)
        durable_files.move(temp_dir / DATABASE, settings.database_file)
        undo.pop_all()


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _remove_empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()
    folder.rmdir()


@contextmanager
def write_to(database: Path, clock: Clock) -> Iterator[Database]:
    """Write to a database that is not in place yet, in one transaction."""
    with open_file(database, "rw") as db, db.atomic("IMMEDIATE"):
        db.begin_write(clock.now(), actor.current())
        yield db


def pause(database: Path, copied_at: str, clock: Clock) -> None:
    """Pause the database of a backup until its owner resumes publishing."""
    with write_to(database, clock) as tx:
        audit_log.record(tx, AuditAction.PUBLISHING_RESTORED, copied_at=copied_at)
        appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp)
        appliance_state.note_restore(tx, copied_at)
        for name in (
            appliance_state.HEARTBEAT,  # no worker and no readiness check have run here yet
            appliance_state.READINESS,
            appliance_state.UNTRUSTED_PROXIES,  # of the original's machine
            appliance_state.SCHEDULED_BACKUP,  # its folder may be on that machine
            appliance_state.INSTANCE_ID,  # the original has it, and may still run
        ):
            appliance_state.remove(tx, name)
        schedule.forget_original(tx)


def _forget_original(database: Path, copied_at: str, clock: Clock, *, is_backup: bool) -> None:
    """Remove the state of the original installation: its failures, its machine, and the networks that refused it."""
    with write_to(database, clock) as tx:
        appliance_state.put(tx, appliance_state.ORIGINAL_UNTIL, copied_at)
        if is_backup:  # the last backup that is known here
            appliance_state.put(tx, appliance_state.BACKED_UP_AT, copied_at)
        for name in (
            appliance_state.BACKUP_FAILED_AT,
            appliance_state.BACKUP_FAILURE,
            appliance_state.WORKER,
            appliance_state.HOUSEKEPT_AT,
        ):
            appliance_state.remove(tx, name)
        waits.forget_holds(tx)


def mark_keys(database: Path, clock: Clock) -> tuple[ApiKeyRow, ...]:
    """Record which API keys came with the backup, and return the valid ones."""
    with write_to(database, clock) as tx:
        api_keys.mark_restored(tx)
        return tuple(api_keys.list_undecided(tx, tx.stamp))
