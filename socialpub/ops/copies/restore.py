"""A copy restored: into an empty `data_dir`, and paused, since the original may have gone on.

Everything is unpacked and checked beside its place first. The database comes last: with it the installation is there,
and whatever fails before leaves nothing behind.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from socialpub.accounts import restored_keys
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.core import actor, crypto, durable_files
from socialpub.core.clock import Clock, stamp
from socialpub.core.crypto import Secrets
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, artifact_rows, trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.media import storage_keys
from socialpub.ops.copies import backup_verification, replica
from socialpub.ops.copies.backup import DATABASE, SECRET, BackupInfo, BackupSummary
from socialpub.runtime import Runtime

SCRATCH = ".restore-"
"""How the name of the folder begins in which it works."""


def restore(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> BackupSummary:
    """Put a copy into the `data_dir` of these settings, paused. Raises OperatorError and leaves nothing half-made.

    Where its `secret.key` lies there, its seal must fit it; `unsealed` accepts a copy that has none. A database alone
    is put beside the media that lie there already, whoever has brought them back.
    """
    alone = replica.is_one(source)
    _refuse_existing(settings, media_may_be_there=alone)
    ours = crypto.load(settings.secret_key_file) if os.path.lexists(settings.secret_key_file) else None
    with backup_verification.opened(source, ours, unsealed=unsealed) as copy:
        info = copy.info
        _check_secret(settings, info, ours)
        try:
            with _scratch_folder(settings.data_dir) as scratch:
                summary = backup_verification.unpack(copy, scratch, media=True)
                pause(scratch / DATABASE, min(info.copied_at, stamp(clock.now())), clock)
                summary = replace(summary, valid_keys=mark_keys(scratch / DATABASE, clock))
                if alone:
                    summary = _with_media_found(summary, settings, scratch / DATABASE)
                _move_into_place(settings, scratch, keep_media=alone)
        except FileExistsError as error:
            raise _exists(Path(error.filename2 or error.filename)) from error
        except OSError as error:
            message = f"The copy could not be put into {settings.data_dir}: {error.strerror}."
            raise OperatorError(message, "Check the disk and who owns the folder, and try again.") from error
    return summary


def clean(rt: Runtime) -> None:
    """Remove what a restore that was killed has left: it may hold a secret.key. None can be under way where an
    appliance works."""
    for scratch in rt.settings.data_dir.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _exists(path: Path) -> OperatorError:
    return OperatorError(f"{path} exists already, and nothing is overwritten.", "Restore into an empty data_dir.")


def _refuse_existing(settings: Settings, *, media_may_be_there: bool) -> None:
    database = settings.database_file
    # SQLite would take what is left of another database's journal for the restored one's.
    for path in (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm", "-journal"))):
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
                f"The copy belongs to another secret.key than {key_file}.",
                "Move that file away; the copy holds its own."
                if info.holds_secret
                else "Put the original's secret.key there; without it no stored token can be read.",
            )
    elif not info.holds_secret:
        raise OperatorError(
            f"The copy does not hold secret.key, and {key_file} does not exist.",
            "Put the original's secret.key there first; without it no stored token can be read.",
        )


@contextmanager
def _scratch_folder(data_dir: Path) -> Iterator[Path]:
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
            there = storage_keys.path(settings.media_dir, key).is_file()
            found, lost = found + there, lost + (not there)
    return replace(summary, media_files=found, media_missing=lost)


def _move_into_place(settings: Settings, scratch: Path, *, keep_media: bool) -> None:
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
        if trail.is_kept(tx):  # else the migration that brings it notes this
            trail.record(tx, TrailAction.PUBLISHING_RESTORED, copied_at=copied_at)
        appliance_state.put(connection, appliance_state.PAUSED_AT, tx.stamp)
        appliance_state.note_restore(tx, copied_at)
        # No worker and no look at readiness have been here yet.
        appliance_state.remove(connection, appliance_state.HEARTBEAT)
        appliance_state.remove(connection, appliance_state.READINESS)
        # The proxies of the original are not those of this machine.
        appliance_state.remove(connection, appliance_state.UNTRUSTED_PROXIES)
        # It lies where the original is, perhaps on another machine.
        appliance_state.remove(connection, appliance_state.SCHEDULED_COPY)
        # The original has it, and may still run.
        appliance_state.remove(connection, appliance_state.INSTANCE_ID)


def mark_keys(database: Path, clock: Clock) -> tuple[UnrevokedKey, ...]:
    """Record which API keys came with the backup, and return the valid ones."""
    with closing(sqlite3.connect(database)) as connection, connection:
        tx = Tx(connection, clock.now(), actor.current())
        restored_keys.mark(tx)
        return tuple(restored_keys.undecided(tx, tx.stamp))
