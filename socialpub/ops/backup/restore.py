"""Restoring a backup into `data_dir`: into an empty one, or over the newer database after an upgrade.

The restored installation is paused, since the original installation may still be running.

The backup is unpacked and checked in a temporary folder first. The database is put into place last and in one step: an
earlier failure leaves nothing behind. A backup from before an upgrade replaces the database in use. Its media stay, and
the database in use is backed up in the same folder first, because it alone contains the posts accepted since then.
"""

import dataclasses
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import CarriedRevocations
from socialpub.core import actor, commands, durable_files, progress
from socialpub.core.clock import Clock, stamp
from socialpub.core.errors import OperatorError, reason_for
from socialpub.core.machine import user_name
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, upgrade, upgrade_backups
from socialpub.db.backup_format import DATABASE, SECRET, BackupInfo, BackupSummary
from socialpub.db.connection import Database, open_file
from socialpub.db.models import ApiKeyRow
from socialpub.db.tables import artifact_rows, audit_log, post_rows, profile_rows, waits
from socialpub.db.tables.audit_log import AuditAction
from socialpub.media import files
from socialpub.ops import storage
from socialpub.ops.backup import verify
from socialpub.ops.backup.verify import OpenedBackup
from socialpub.ops.notify import notifier
from socialpub.runtime import Runtime

TEMP_DIR = ".restore-"
"""The prefix of the temporary folder."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """What a backup from before an upgrade replaced."""

    backup: Path
    """The backup of the replaced database."""
    accepted_since: int
    """The number of posts that the replaced database accepted after the backup."""
    open_since: int
    """The number of these posts that were not yet published."""
    keys: CarriedRevocations


@dataclass(frozen=True, slots=True)
class Restored:
    info: BackupInfo
    summary: BackupSummary
    valid_keys: tuple[ApiKeyRow, ...]
    """The valid API keys that the owner must keep or revoke."""
    updates: list[str]
    """The migrations that this version applies at its next start."""
    moved_aside: Path | None = None
    """The path of the empty database of a new installation."""
    rollback: Rollback | None = None


def restore(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> Restored:
    """Restore a backup, paused. Raises OperatorError and leaves nothing behind.

    If the `secret.key` of the backup is in place, the signature must be valid. `unsealed` accepts an unsigned backup.
    """
    try:
        with verify.open_backup(source) as backup:
            _refuse_existing(settings, backup)
            with _exclusive_data_dir(settings, source):
                _refuse_existing(settings, backup)  # a process may have written before the lock
                ours = _check_secret(settings, backup.info)
                with _make_temp_dir(settings.data_dir) as temp_dir:
                    summary = verify.unpack(backup, temp_dir, ours, unsealed=unsealed)
                    return _install(settings, backup, summary, temp_dir, clock, ours)
    except FileExistsError as error:
        raise _exists(Path(error.filename2 or error.filename)) from error
    except (OSError, sqlite3.Error) as error:
        raise OperatorError(
            f"{source} could not be put into {settings.data_dir}: {reason_for(error)}.",
            "Nothing was changed. Check the disk and the owner of the folder, and try again.",
        ) from error


def _install(
    settings: Settings, backup: OpenedBackup, summary: BackupSummary, temp_dir: Path, clock: Clock, ours: Secrets | None
) -> Restored:
    in_use, database, moved_aside, rollback = settings.database_file, temp_dir / DATABASE, None, None
    if in_use.exists() and ours is not None and not backup.info.holds_media:
        rollback = _back_up_replaced(settings, backup, ours, clock)
    elif in_use.exists():
        _end_journal(in_use)
        moved_aside = in_use.with_name(f"{in_use.name}.new-{stamp(clock.now()).replace(':', '').replace('-', '')}")
    with open_file(database, "rw") as tx, tx.atomic("IMMEDIATE"):
        tx.begin_write(clock.now(), actor.current())
        _pause(tx, min(summary.copied_at, tx.stamp))
        if not backup.keeps_media:
            appliance_state.put(tx, appliance_state.BACKED_UP_AT, summary.copied_at)
        if rollback is None:
            api_keys.mark_restored(tx)
        else:
            rollback = dataclasses.replace(rollback, keys=_keep_access(tx, in_use))
        valid_keys = tuple(api_keys.list_undecided(tx, tx.stamp))
        updates = upgrade.list_missing(upgrade.list_applied(tx))
        if backup.keeps_media:
            held, lost = _count_media(settings, tx)
            summary = dataclasses.replace(summary, media_files=held, media_missing=lost)
    _move_into_place(settings, temp_dir, moved_aside, keep_media=backup.keeps_media, replace=rollback is not None)
    return Restored(backup.info, summary, valid_keys, updates, moved_aside, rollback)


def remove_temp_dirs(rt: Runtime) -> None:
    """Remove the leftovers of a killed restore, which may contain a `secret.key`."""
    for temp_dir in rt.settings.data_dir.glob(f"{TEMP_DIR}*"):
        shutil.rmtree(temp_dir, ignore_errors=True)


# --- what is in data_dir ----------------------------------------------------------------------------------------------


def _exclusive_data_dir(settings: Settings, source: Path) -> AbstractContextManager[None]:
    """Keep processes from a database that is in `data_dir`."""
    if not settings.database_file.exists():
        return nullcontext()
    remedy = f"{storage.while_stopped('restore', str(source))}."
    return storage.exclusive_data_dir(settings, "uses the database", remedy)


def _exists(path: Path) -> OperatorError:
    return OperatorError(f"{path} already exists and is not overwritten.", "Restore into an empty data_dir.")


def _refuse_existing(settings: Settings, backup: OpenedBackup) -> None:
    database, media = settings.database_file, settings.media_dir
    may_replace = not backup.info.holds_media or _is_new(database)
    if os.path.lexists(database) and not may_replace:
        raise _exists(database)
    if not database.exists():
        # SQLite would apply the journal of another database to the restored one.
        for path in (database.with_name(database.name + end) for end in ("-wal", "-shm", "-journal")):
            if os.path.lexists(path):
                raise _exists(path)
    is_empty = media.is_dir() and all(path.is_dir() for path in media.rglob("*"))
    if os.path.lexists(media) and not is_empty and not backup.keeps_media:
        raise _exists(media)


def _is_new(database: Path) -> bool:
    """Return whether the database has no profile, post, API key or media."""
    try:
        with open_file(database, "rw") as db:
            profiles, keys = profile_rows.count_by_provider_and_status(db), api_keys.list_all(db)
            return not (profiles or keys or post_rows.count(db) or artifact_rows.stored(db)[0])
    except sqlite3.Error:
        return False


def _check_secret(settings: Settings, info: BackupInfo) -> Secrets | None:
    """Return the key in place, which must be the key of the backup. None: the backup contains the key."""
    key_file = settings.secret_key_file
    ours = crypto.load(key_file) if os.path.lexists(key_file) else None
    if ours is not None and ours.check_value == info.secret_key:
        return ours
    if ours is None and info.holds_secret:
        return None
    folder = next(path for path in key_file.parents if path.exists())
    owner = f"--owner={user_name(folder.stat().st_uid)}"
    away = commands.system_line("mv", str(key_file), f"{key_file}.new")
    put = commands.system_line("install", owner, "--mode=600", "FILE", str(key_file))
    raise OperatorError(
        f"The backup does not contain secret.key, and {key_file} does not exist."
        if ours is None
        else f"The backup belongs to another secret.key than {key_file}.",
        f"The backup contains its own secret.key. To move the other key away, run `{away}`."
        if info.holds_secret
        else "Put the secret.key of the original installation in place: without it, stored tokens cannot be read. "
        f"If the key is in FILE, run `{put}`.",
    )


def _count_media(settings: Settings, db: Database) -> tuple[int, int]:
    """Return the numbers of a database's files that are in the media folder, and that are missing there."""
    held = [files.file_path(settings.media_dir, key).is_file() for key in artifact_rows.storage_keys(db)]
    return sum(held), len(held) - sum(held)


# --- the database in use ----------------------------------------------------------------------------------------------


def _end_journal(database: Path) -> None:
    """Move the journal into the database. SQLite would apply the journal to the restored database."""
    with open_file(database, "rw") as db:
        db.execute_sql("PRAGMA journal_mode = delete")
    for end in ("-wal", "-journal"):
        if os.path.lexists(database.with_name(database.name + end)):
            raise OperatorError(f"Another program uses {database}.", f"Find the program: fuser {database}")


def _back_up_replaced(settings: Settings, backup: OpenedBackup, ours: Secrets, clock: Clock) -> Rollback:
    database = settings.database_file
    with open_file(database, "rw") as db:
        schema = max(upgrade.list_applied(db), default="0000_empty")
        made = upgrade_backups.create(db, database, ours, schema, clock.now(), spare=backup.path)
        accepted, is_open = post_rows.count_since(db, backup.info.copied_at)
    _end_journal(database)
    return Rollback(made.path, accepted, is_open, CarriedRevocations((), ()))


def _keep_access(tx: Database, in_use: Path) -> CarriedRevocations:
    """Carry revocations and the password from the database in use, so that revoked keys stay revoked.

    Sessions and links end, because `_pause` removes the instance id that they belong to.
    """
    with open_file(in_use, "ro") as db:
        carried = api_keys.carry_revocations(tx, db)
        password = appliance_state.get(db, appliance_state.PASSWORD)
        if password is not None and password != appliance_state.get(tx, appliance_state.PASSWORD):
            appliance_state.put(tx, appliance_state.PASSWORD, password)
            audit_log.record(tx, AuditAction.PASSWORD_SET)
        return carried


# --- putting the backup into place ------------------------------------------------------------------------------------


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


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _move_into_place(
    settings: Settings, temp_dir: Path, moved_aside: Path | None, *, keep_media: bool, replace: bool
) -> None:
    database, media = settings.database_file, settings.media_dir
    (temp_dir / "media").mkdir(exist_ok=True, mode=0o700)
    progress.begin("Waiting for the disk")
    os.sync()  # the names must not reach the disk before the contents
    with ExitStack() as undo:
        if not os.path.lexists(settings.secret_key_file):
            durable_files.move(temp_dir / SECRET, settings.secret_key_file)
            undo.callback(settings.secret_key_file.unlink)
        if not (keep_media and media.exists()):
            for path in sorted(media.rglob("*"), reverse=True):  # empty folders
                path.rmdir()
            (temp_dir / "media").rename(media)
            undo.callback(shutil.rmtree, media, ignore_errors=True)
        if moved_aside is not None:
            durable_files.move(database, moved_aside)
            undo.callback(moved_aside.rename, database)
        if replace:
            (temp_dir / DATABASE).replace(database)
            durable_files.flush_folder(database.parent)
        else:
            durable_files.move(temp_dir / DATABASE, database)
        undo.pop_all()


def _pause(tx: Database, copied_at: str) -> None:
    """Pause the database of a backup until its owner resumes publishing, and remove the state of the original."""
    audit_log.record(tx, AuditAction.PUBLISHING_RESTORED, copied_at=copied_at)
    appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp)
    appliance_state.note_restore(tx, copied_at)
    appliance_state.put(tx, appliance_state.ORIGINAL_UNTIL, copied_at)
    for name in (
        appliance_state.HEARTBEAT,  # no worker and no readiness check have run here yet
        appliance_state.READINESS,
        appliance_state.UNTRUSTED_PROXIES,  # of the original's machine
        appliance_state.SCHEDULED_BACKUP,  # its folder may be on that machine
        appliance_state.INSTANCE_ID,  # the original has it, and may still run
        appliance_state.BACKUP_FAILED_AT,
        appliance_state.BACKUP_FAILURE,
        appliance_state.WORKER,
        appliance_state.HOUSEKEPT_AT,
    ):
        appliance_state.remove(tx, name)
    notifier.forget_original(tx)
    waits.forget_holds(tx)
