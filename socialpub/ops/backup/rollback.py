"""The version before an upgrade: what is left of it on this machine, and what going back to it needs.

`install-service` keeps the environment that was in use before. The former version itself is never imported: its files
say which migrations it knows. A former version that knows all migrations of the database works with it as it is. If it
does not, the backup from before the upgrade has the shape that it knows.
"""

import os
import re
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import CarriedRevocations, UnrevokedKey
from socialpub.core import actor, commands, durable_files
from socialpub.core.clock import Clock
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, upgrade, upgrade_backups
from socialpub.db.connection import Reader, Tx
from socialpub.db.tables import artifact_rows, audit_log, post_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.upgrade_backups import UpgradeBackup
from socialpub.ops import storage
from socialpub.ops.backup import restore, verify
from socialpub.ops.backup.create import BackupInfo

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
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True)) as connection:
        unknown = sorted(set(upgrade.applied(connection)) - former.migrations)
    if not unknown:
        return None
    schema = max(former.migrations)
    for copy in upgrade_backups.list_all(database):
        if copy.schema == schema:
            return copy
    raise OperatorError(
        f"{former.version} does not know the present database ({', '.join(unknown)}), and no backup from before the "
        f"upgrade ({schema}) is in {upgrade_backups.folder_of(database)}.",
        "Stay with the present version, or restore a backup that the former version made into an empty data_dir.",
    )


# MERGED from ops/copies/rollback.py: An upgrade undone: the rows as they were before it come back, paused, and the

UNFINISHED = ".rollback.db"


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
    """The copy of the database that was in use; None when there was none."""
    updates: list[str]
    """The migrations that this version applies to it at the next start."""
    keys: CarriedRevocations
    valid_keys: tuple[UnrevokedKey, ...]
    """The valid API keys that the owner must keep or revoke."""


def is_upgrade_backup(source: Path, settings: Settings) -> bool:
    """Whether this is a database that lies among those of upgrades, or says that it was made there. Any other is what a
    replica brought back."""
    if not verify.is_database(source):
        return False
    if _lies_among_them(source, settings):
        return True
    with suppress(sqlite3.Error, UnicodeDecodeError):
        address = f"file:{quote(str(source.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as rows:
            return appliance_state.get(Reader(rows), appliance_state.UPGRADE_BACKUP_OF) is not None
    return False


def _lies_among_them(source: Path, settings: Settings) -> bool:
    return source.resolve().parent == upgrade_backups.folder_of(settings.database_file).resolve()


def roll_back(source: Path, settings: Settings, clock: Clock, *, unsealed: bool = False) -> Rollback:
    """Put a copy from before an upgrade in the place of the database. Raises OperatorError, and then nothing changed.

    Such a copy has no seal; one that lies among the copies of upgrades is trusted as the database beside it is.
    """
    if not unsealed and not _lies_among_them(source, settings):
        raise OperatorError(
            f"{source} is a database without a seal: somebody may have changed it on purpose.",
            "If you know where it has been since it was made, accept it once with --unsealed.",
        )
    database, unfinished = settings.database_file, settings.data_dir / UNFINISHED
    with storage.exclusive_data_dir(
        settings, "works with the present database", f"{commands.while_stopped('restore', str(source))}."
    ):
        try:
            unfinished.unlink(missing_ok=True)
            _unpack(source, unfinished)
            copied_at, version = _check(source, unfinished, settings)
            put_aside = _put_aside(database, clock, version, spare=source) if database.exists() else None
            restore.pause(unfinished, copied_at, clock)
            carried, valid_keys = _keep_access(unfinished, database if put_aside else None, clock)
            with closing(sqlite3.connect(unfinished)) as rows:
                posts, updates = post_rows.count(Reader(rows)), upgrade.missing(upgrade.applied(rows))
                keys = artifact_rows.storage_keys(Reader(rows))
                accepted_since, open_since = _accepted_since(put_aside, copied_at)
                missing = sum(not (settings.media_dir / key).exists() for key in keys)
            _replace(database, unfinished)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OperatorError(
                f"{source} could not be put into {settings.data_dir}: {reason}.",
                "Nothing was changed. Check the disk and who owns the folder, and try again.",
            ) from error
        finally:
            unfinished.unlink(missing_ok=True)
    return Rollback(
        copied_at, version, posts, accepted_since, open_since, missing, put_aside, updates, carried, valid_keys
    )


def _unpack(source: Path, target: Path) -> None:
    with source.open("rb") as content, durable_files.create(target) as file:
        shutil.copyfileobj(content, file, 1 << 20)
        durable_files.flush(file)


def _check(source: Path, copied: Path, settings: Settings) -> tuple[str, str]:
    """Return the instant of the copy, whose row is removed, and the version that worked with it."""
    ours = crypto.load(settings.secret_key_file)
    with closing(sqlite3.connect(copied)) as rows, rows:
        try:
            copied_at = appliance_state.get(Reader(rows), appliance_state.UPGRADE_BACKUP_OF)
            belongs_to = appliance_state.get(Reader(rows), appliance_state.SECRET_KEY)
            version = upgrade_backups.version_of(Reader(rows))
        except sqlite3.Error:
            copied_at = belongs_to = None
            version = ""
        if copied_at is None:
            raise OperatorError(
                f"{source} is not a backup that socialpub made before an upgrade.",
                f"Name a file of {upgrade_backups.folder_of(settings.database_file)}, or one that "
                f"`{commands.line('backup')}` wrote.",
            )
        if belongs_to != ours.check_value:
            raise OperatorError(
                f"{source} belongs to another secret.key than {settings.secret_key_file}.",
                "Put the secret.key of that time in its place first, and keep the present one.",
            )
        appliance_state.remove(rows, appliance_state.UPGRADE_BACKUP_OF)
    verify.check_database(source, copied, BackupInfo(copied_at, ours.check_value, holds_secret=False))
    return copied_at, version


def _accepted_since(put_aside: Path | None, copied_at: str) -> tuple[int, int]:
    if put_aside is None:
        return 0, 0
    with closing(sqlite3.connect(f"file:{quote(str(put_aside.absolute()))}?mode=ro", uri=True)) as rows:
        return post_rows.count_since(Reader(rows), copied_at)


def _put_aside(database: Path, clock: Clock, following: str, *, spare: Path) -> Path:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        schema = max(upgrade.applied(connection), default="0000_empty")
        copy = upgrade_backups.make(connection, database, schema, clock.now(), following, spare=spare)
        # What is left in the journal would be taken for the other database's.
        connection.execute("PRAGMA journal_mode = delete")
    for end in ("-wal", "-journal"):
        if os.path.lexists(database.with_name(database.name + end)):
            raise OperatorError(f"Another program works with {database}.", f"Find out which one: fuser {database}")
    return copy.path


def _keep_access(rows: Path, in_use: Path | None, clock: Clock) -> tuple[CarriedRevocations, tuple[UnrevokedKey, ...]]:
    """Carry revocations and the password from the database in use: an upgrade undone lets no revoked caller in.

    Sessions and links end by themselves, because `restore.pause` removes the instance id that they belong to.
    """
    if in_use is None:
        return CarriedRevocations((), ()), restore.mark_keys(rows, clock)
    address = f"file:{quote(str(in_use.absolute()))}?mode=ro"
    with closing(sqlite3.connect(rows)) as older, older, closing(sqlite3.connect(address, uri=True)) as newer:
        tx, reader = Tx(older, clock.now(), actor.current()), Reader(newer)
        carried = api_keys.carry_revocations(tx, reader)
        password = appliance_state.get(reader, appliance_state.PASSWORD)
        if password is not None and password != appliance_state.get(tx, appliance_state.PASSWORD):
            appliance_state.put(tx, appliance_state.PASSWORD, password)
            if audit_log.exists(tx):
                audit_log.record(tx, AuditAction.PASSWORD_SET)
        return carried, tuple(api_keys.list_undecided(tx, tx.stamp))


def _replace(database: Path, unfinished: Path) -> None:
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(database)
    durable_files.flush_folder(database.parent)
