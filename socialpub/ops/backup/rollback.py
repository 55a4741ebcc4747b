"""Going back to the version before an upgrade: what is left of it on this machine, and how its database returns.

`install-service` keeps the environment that was in use before. The former version itself is never imported: its files
say which migrations it knows. A former version that knows all migrations of the database works with it as it is. If it
does not, the backup from before the upgrade has the shape that it knows.

That backup replaces the database in one step, paused. Media stay. No older backup contains what was accepted since: the
database in use is put among the upgrade backups first, so the same command leads forward again.
"""

import os
import re
import sqlite3
import sys
from contextlib import closing, suppress
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
from socialpub.db.upgrade_backups import UpgradeBackup
from socialpub.ops import storage
from socialpub.ops.backup import restore, verify
from socialpub.ops.backup.format import DATABASE

_STATED = re.compile(r"^Version: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of an installed service, with socialpub in it."""

    folder: Path
    version: str
    package: Path
    """The folder of its package `socialpub`."""
    built_at: float

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "socialpub"

    @property
    def migrations(self) -> frozenset[str]:
        """The names of the migrations that this version knows."""
        return frozenset(path.stem for path in (self.package / "db" / "migrations").glob("[0-9]*.py"))

    @property
    def units(self) -> frozenset[str]:
        """The names of the units that this version installs."""
        return frozenset(
            path.name for path in (self.package / "cli" / "examples").glob("socialpub-*.*")
            if path.suffix in (".service", ".socket", ".timer")
        )  # fmt: skip


def read_environment(folder: Path) -> Environment | None:
    """Return what a folder of environments holds, or None if there is no socialpub in it."""
    package = next(folder.glob("lib/python3*/site-packages/socialpub"), None)
    stated = next(folder.glob("lib/python3*/site-packages/socialpub-*.dist-info/METADATA"), None)
    built, found = folder / "pyvenv.cfg", _STATED.search(stated.read_text("utf-8")) if stated else None
    if package is None or found is None or not built.exists() or folder.suffix == ".partial":
        return None
    return Environment(folder, found[1], package, built.stat().st_mtime)


def find_former(in_use: Path) -> Environment | None:
    """Return the newest environment of another version that is older than the one in use, or None.

    `in_use` is the folder of that one. The others are beside it.
    """
    present = read_environment(in_use)
    if present is None:
        return None
    others = [found for folder in sorted(in_use.parent.iterdir()) if (found := read_environment(folder)) is not None]
    older = [one for one in others if one.built_at < present.built_at and one.version != present.version]
    return max(older, key=lambda one: one.built_at, default=None)


def former_of_this_service() -> Environment | None:
    """Return what `go-back` returns to, if this process is of an installed service that has a former version."""
    in_use = Path(sys.prefix)
    is_service = in_use.parent.name == "environments" and (in_use.parents[1] / ".venv").is_symlink()
    return find_former(in_use) if is_service else None


def backup_needed(former: Environment, settings: Settings) -> UpgradeBackup | None:
    """Return the backup that the former version needs, or None if it works with the present database.

    Raises OperatorError if it needs one that is not there.
    """
    database = settings.database_file
    if not database.exists():
        return None
    with open_file(database, "rw") as reader:
        unknown = sorted(set(upgrade.list_applied(reader.connection)) - former.migrations)
    if not unknown:
        return None
    schema = max(former.migrations)
    for backup in upgrade_backups.list_all(database):
        if backup.schema == schema:
            return backup
    raise OperatorError(
        f"{former.version} does not know the present database ({', '.join(unknown)}), and no backup from before the "
        f"upgrade ({schema}) is in {upgrade_backups.backup_folder(database)}.",
        "Stay with the present version, or restore a backup that the former version made into an empty data_dir.",
    )


# --- going back -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rollback:
    copied_at: str
    version: str
    """The version that worked with it."""
    posts: int
    accepted_since: int
    """Posts that the database which was in use accepted after this instant."""
    open_since: int
    """Those of them that were still to be published."""
    media_missing: int
    """Files that the rows name and that were removed since."""
    put_aside: Path | None
    """The backup of the database that was in use, if there was one."""
    updates: list[str]
    """The migrations that this version applies to it at the next start."""
    keys: CarriedRevocations
    valid_keys: tuple[ApiKeyRow, ...]
    """The valid API keys that the owner must keep or revoke."""


def is_upgrade_backup(source: Path, settings: Settings) -> bool:
    """Return whether this is a database from before an upgrade. A replica brings back any other."""
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
    """Replace the database by a backup from before an upgrade. Raises OperatorError, and then nothing changed.

    Such a backup has no seal. One in the folder of upgrade backups is trusted like the database beside it.
    """
    if not unsealed and not _is_in_its_folder(source, settings):
        raise OperatorError(
            f"{source} is a database without a seal: somebody may have changed it on purpose.",
            "If you know where it has been since it was made, accept it once with --unsealed.",
        )
    in_use = settings.database_file
    remedy = f"{commands.here().while_stopped('restore', str(source))}."
    with storage.exclusive_data_dir(settings, "works with the present database", remedy):
        copied_at, version = _read_origin(source, settings)
        with verify.open_backup(source, None) as backup, restore.installing(source, settings) as temp_dir:
            posts, restored = verify.unpack(backup, temp_dir, media=False).posts, temp_dir / DATABASE
            put_aside = _put_aside(in_use, clock, version, spare=source) if in_use.exists() else None
            with restore.write_to(restored, clock) as tx:
                appliance_state.remove(tx, appliance_state.UPGRADE_BACKUP_OF)
                updates = upgrade.list_missing(upgrade.list_applied(tx.connection))
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
            f"Name a file of {upgrade_backups.backup_folder(settings.database_file)}, or one that "
            f"`{commands.line('backup')}` wrote.",
        )
    if belongs_to != crypto.load(settings.secret_key_file).check_value:
        raise OperatorError(
            f"{source} belongs to another secret.key than {settings.secret_key_file}.",
            "Put the secret.key of that time in its place first, and keep the present one.",
        )
    return copied_at, version


def _accepted_since(put_aside: Path | None, copied_at: str) -> tuple[int, int]:
    if put_aside is None:
        return 0, 0
    with open_file(put_aside, "ro") as reader:
        return post_rows.count_since(reader, copied_at)


def _put_aside(database: Path, clock: Clock, following: str, *, spare: Path) -> Path:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        schema = max(upgrade.list_applied(connection), default="0000_empty")
        backup = upgrade_backups.create(connection, database, schema, clock.now(), following, spare=spare)
        # What is left in the journal would be taken for the other database's.
        connection.execute("PRAGMA journal_mode = delete")
    for end in ("-wal", "-journal"):
        if os.path.lexists(database.with_name(database.name + end)):
            raise OperatorError(f"Another program works with {database}.", f"Find out which one: fuser {database}")
    return backup.path


def _keep_access(rows: Path, in_use: Path | None, clock: Clock) -> tuple[CarriedRevocations, tuple[ApiKeyRow, ...]]:
    """Carry revocations and the password from the database in use, so that no revoked caller gets in again.

    Sessions and links end by themselves, because `restore.pause` removes the instance id that they belong to.
    """
    if in_use is None:
        return CarriedRevocations((), ()), restore.mark_keys(rows, clock)
    with restore.write_to(rows, clock) as tx, open_file(in_use, "ro") as reader:
        carried = api_keys.carry_revocations(tx, reader)
        password = appliance_state.get(reader, appliance_state.PASSWORD)
        if password is not None and password != appliance_state.get(tx, appliance_state.PASSWORD):
            appliance_state.put(tx, appliance_state.PASSWORD, password)
            if audit_log.exists(tx):
                audit_log.record(tx, AuditAction.PASSWORD_SET)
        return carried, tuple(api_keys.list_undecided(tx, tx.stamp))


def _replace(database: Path, restored: Path) -> None:
    with restored.open("rb+") as file:
        durable_files.flush(file)
    restored.replace(database)
    durable_files.flush_folder(database.parent)
