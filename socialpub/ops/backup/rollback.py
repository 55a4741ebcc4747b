"""Going back to the database from before an upgrade.

The backup replaces the database in one step, paused. Media stay. The database in use is added to the upgrade backups
first, because it alone contains the posts accepted since the upgrade. The same command restores it again.
"""

import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import CarriedRevocations
from socialpub.core import commands, durable_files
from socialpub.core.clock import Clock
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, upgrade, upgrade_backups
from socialpub.db.connection import open_file
from socialpub.db.models import ApiKeyRow
from socialpub.db.tables import audit_log, post_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.ops import storage
from socialpub.ops.backup import restore, verify
from socialpub.ops.backup.format import DATABASE


@dataclass(frozen=True, slots=True)
class Rollback:
    copied_at: str
    version: str
    """The version that used the database."""
    posts: int
    accepted_since: int
    """The number of posts that the replaced database accepted after this instant."""
    open_since: int
    """The number of these posts that were not yet published."""
    media_missing: int
    """The number of files that were removed since then."""
    put_aside: Path | None
    """The backup of the replaced database, if there was one."""
    updates: list[str]
    """The migrations that this version would apply at its next start."""
    keys: CarriedRevocations
    valid_keys: tuple[ApiKeyRow, ...]
    """The valid API keys that the owner must keep or revoke."""


def is_upgrade_backup(source: Path, settings: Settings) -> bool:
    """Return whether this is a database from before an upgrade, and not from a replica."""
    if not verify.is_database(source):
        return False
    if _is_in_its_folder(source, settings):
        return True
    with suppress(sqlite3.Error, UnicodeDecodeError), open_file(source, verify.READ_ONLY) as reader:
        return appliance_state.get(reader, appliance_state.UPGRADE_BACKUP_OF) is not None
    return False


def _is_in_its_folder(source: Path, settings: Settings) -> bool:
    return source.resolve().parent == upgrade_backups.backup_folder(settings.database_file).resolve()


def roll_back(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> Rollback:
    """Replace the database with a backup from before an upgrade. Raises OperatorError and then changes nothing.

    Such a backup is not signed. In the folder of upgrade backups, the backup is trusted like the database.
    """
    if not unsealed and not _is_in_its_folder(source, settings):
        raise OperatorError(
            f"{source} is an unsigned database, so tampering cannot be ruled out.",
            "If you know that no other person had access to the file, accept the file with --unsealed.",
        )
    in_use = settings.database_file
    remedy = f"{storage.while_stopped('restore', str(source))}."
    with storage.exclusive_data_dir(settings, "uses the current database", remedy):
        copied_at, version = _read_origin(source, settings)
        with verify.open_backup(source, None) as backup, restore.installing(source, settings) as temp_dir:
            posts, restored = verify.unpack(backup, temp_dir, media=False).posts, temp_dir / DATABASE
            put_aside = _put_aside(in_use, clock, version, spare=source) if in_use.exists() else None
            with restore.write_to(restored, clock) as tx:
                appliance_state.remove(tx, appliance_state.UPGRADE_BACKUP_OF)
                updates = upgrade.list_missing(upgrade.list_applied(tx))
            restore.pause(restored, copied_at, clock)
            carried, valid_keys = _keep_access(restored, in_use if put_aside else None, clock)
            accepted_since, open_since = _accepted_since(put_aside, copied_at)
            missing = restore.count_missing_media(settings, restored)
            _replace(in_use, restored)
    return Rollback(
        copied_at, version, posts, accepted_since, open_since, missing, put_aside, updates, carried, valid_keys
    )


def _read_origin(source: Path, settings: Settings) -> tuple[str, str]:
    """Return the instant of an upgrade backup and the version that worked with it."""
    copied_at = belongs_to = None
    version = ""
    with suppress(sqlite3.Error), open_file(source, verify.READ_ONLY) as reader:
        copied_at = appliance_state.get(reader, appliance_state.UPGRADE_BACKUP_OF)
        belongs_to = appliance_state.get(reader, appliance_state.SECRET_KEY)
        version = upgrade_backups.read_version(reader)
    if copied_at is None:
        raise OperatorError(
            f"{source} is not a backup that socialpub made before an upgrade.",
            f"Use a file in {upgrade_backups.backup_folder(settings.database_file)}, or a backup that "
            f"`{commands.line('backup')}` wrote.",
        )
    if belongs_to != crypto.load(settings.secret_key_file).check_value:
        raise OperatorError(
            f"{source} belongs to another secret.key than {settings.secret_key_file}.",
            "First, put the secret.key of that time in place, and keep the current key elsewhere.",
        )
    return copied_at, version


def _accepted_since(put_aside: Path | None, copied_at: str) -> tuple[int, int]:
    if put_aside is None:
        return 0, 0
    with open_file(put_aside, "ro") as reader:
        return post_rows.count_since(reader, copied_at)


def _put_aside(database: Path, clock: Clock, following: str, *, spare: Path) -> Path:
    with open_file(database, "rw") as db:
        schema = max(upgrade.list_applied(db), default="0000_empty")
        backup = upgrade_backups.create(db, database, schema, clock.now(), following, spare=spare)
        # SQLite would apply the journal to the other database.
        db.execute_sql("PRAGMA journal_mode = delete")
    for end in ("-wal", "-journal"):
        if os.path.lexists(database.with_name(database.name + end)):
            raise OperatorError(f"Another program uses {database}.", f"Find the program: fuser {database}")
    return backup.path


def _keep_access(rows: Path, in_use: Path | None, clock: Clock) -> tuple[CarriedRevocations, tuple[ApiKeyRow, ...]]:
    """Carry revocations and the password from the database in use, so that revoked keys stay revoked.

    Sessions and links end, because `restore.pause` removes the instance id that they belong to.
    """
    if in_use is None:
        return CarriedRevocations((), ()), restore.mark_keys(rows, clock)
    with restore.write_to(rows, clock) as tx, open_file(in_use, "ro") as reader:
        carried = api_keys.carry_revocations(tx, reader)
        password = appliance_state.get(reader, appliance_state.PASSWORD)
        if password is not None and password != appliance_state.get(tx, appliance_state.PASSWORD):
            appliance_state.put(tx, appliance_state.PASSWORD, password)
            audit_log.record(tx, AuditAction.PASSWORD_SET)
        return carried, tuple(api_keys.list_undecided(tx, tx.stamp))


def _replace(database: Path, restored: Path) -> None:
    with restored.open("rb+") as file:
        durable_files.flush(file)
    restored.replace(database)
    durable_files.flush_folder(database.parent)
