"""An upgrade backs up the database first. A failed upgrade leaves the former or the new state."""

import base64
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from socialpub.core import version
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade, upgrade_backups
from socialpub.db.connection import open_file
from socialpub.db.process_lock import ProcessLock
from socialpub.runtime import build
from tests.e2e.processes import DEFAULT_SIGNALS
from tests.support.appliance import accept, add_profile, open_appliance, settings_in
from tests.support.copies import copy_of, put_back
from tests.support.hand_clock import HandClock
from tests.support.watched import Watched

NEXT = """
STATEMENTS = ("CREATE TABLE extra (n INTEGER)", "INSERT INTO extra SELECT count(*) FROM post")


def up(_migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
"""
DYING = NEXT + "        __import__('os').kill(__import__('os').getpid(), 9)\n"
FAILING = NEXT + "    db.execute_sql('INSERT INTO nowhere VALUES (1)')\n"


class Upgrading(NamedTuple):
    """An appliance with a post, and the migrations of a newer version."""

    settings: Settings
    clock: HandClock
    migrations: Path

    def start(self) -> None:
        build(self.settings, clock=self.clock, role="test").close()

    @property
    def applied(self) -> set[str]:
        with open_file(self.settings.database_file, "ro") as connection:
            return set(upgrade.list_applied(connection))

    @property
    def copies(self) -> list[str]:
        return [copy.schema for copy in upgrade_backups.list_all(self.settings.database_file)]

    @property
    def in_folder(self) -> int:
        folder = upgrade_backups.backup_folder(self.settings.database_file)
        return len(list(folder.iterdir())) if folder.exists() else 0

    def add(self, name: str, content: str) -> None:
        (self.migrations / f"{name}.py").write_text(content)


@pytest.fixture
def upgrading(tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Upgrading:
    rt = open_appliance(tmp_path, clock)
    accept(rt, add_profile(rt))
    rt.close()
    migrations = tmp_path / "migrations"
    shutil.copytree(upgrade.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(upgrade, "MIGRATIONS", migrations)
    return Upgrading(settings_in(tmp_path), clock, migrations)


def posts_in(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM post").fetchone()[0])


def test_the_backup_has_the_rows_before_the_upgrade_and_is_private(upgrading):
    upgrading.add("9001_next", NEXT)
    newest = max(upgrading.applied)
    upgrading.start()
    assert "9001_next" in upgrading.applied
    (copy,) = upgrade_backups.list_all(upgrading.settings.database_file)
    assert copy.schema == newest
    assert copy.path.stat().st_mode & 0o777 == 0o700
    assert posts_in(copy.path / "socialpub.db") == 1
    with open_file(copy.path / "socialpub.db", "ro") as connection:
        assert "9001_next" not in upgrade.list_applied(connection)
    upgrading.start()
    assert upgrading.in_folder == 1


def test_the_backup_contains_the_version_that_used_the_database(upgrading, monkeypatch):
    monkeypatch.setattr(version, "VERSION", "1.2.0")
    upgrading.add("9001_next", NEXT)
    upgrading.start()
    monkeypatch.setattr(version, "VERSION", "1.3.0.dev0")
    upgrading.clock.forward(60)
    upgrading.add("9002_more", NEXT.replace("extra", "more"))
    upgrading.start()
    newest = upgrade_backups.list_all(upgrading.settings.database_file)[0]
    assert (newest.schema, newest.version) == ("9001_next", "1.2.0")


def test_the_last_backups_are_kept_one_for_each_schema(upgrading):
    for number in range(5):
        upgrading.clock.forward(60)
        upgrading.add(f"900{number}_next", NEXT.replace("extra", f"extra{number}"))
        upgrading.start()
    assert upgrading.copies == ["9003_next", "9002_next", "9001_next"]
    upgrading.add("9005_broken", FAILING)
    for _ in range(3):
        upgrading.clock.forward(60)
        with pytest.raises(OperatorError):
            upgrading.start()
    assert upgrading.copies == ["9004_next", "9003_next", "9002_next"]


def test_a_failed_migration_changes_nothing_and_its_hint_names_the_restore(upgrading):
    before = upgrading.applied
    upgrading.add("9001_next", FAILING)
    with pytest.raises(OperatorError) as refused:
        upgrading.start()
    (copy,) = upgrade_backups.list_all(upgrading.settings.database_file)
    assert "no such table: nowhere" in refused.value.message
    assert f"socialpub restore {copy.path}" in (refused.value.hint or "")
    assert upgrading.applied == before
    upgrading.add("9001_next", NEXT)
    upgrading.clock.forward(60)
    upgrading.start()
    assert "9001_next" in upgrading.applied


def test_nothing_is_changed_under_a_process_of_the_former_version(upgrading, tmp_path):
    before = upgrading.applied
    upgrading.add("9001_next", NEXT)
    worker = ProcessLock(upgrading.settings.run_dir / "owners", "worker-0123")
    try:
        with pytest.raises(OperatorError, match="worker-0123") as refused:
            upgrading.start()
        assert refused.value.hint
        assert upgrading.applied == before
    finally:
        worker.close()
    upgrading.start()
    assert "9001_next" in upgrading.applied


def test_with_another_secret_key_no_migration_begins(upgrading):
    before = upgrading.applied
    upgrading.add("9001_next", NEXT)
    key = upgrading.settings.secret_key_file
    right = key.read_text()
    key.write_text(base64.urlsafe_b64encode(b"w" * 32).decode())
    with pytest.raises(OperatorError, match=r"secret\.key"):
        upgrading.start()
    assert upgrading.applied == before
    key.write_text(right)
    upgrading.start()
    assert "9001_next" in upgrading.applied


def test_a_backup_of_an_older_version_is_upgraded_at_its_first_start(upgrading, tmp_path):
    rt = build(upgrading.settings, clock=upgrading.clock, role="test")
    copy = copy_of(rt, tmp_path)
    rt.close()
    upgrading.add("9001_next", NEXT)
    other = upgrading._replace(settings=put_back(copy, tmp_path / "new", upgrading.clock))
    assert "9001_next" not in other.applied
    other.start()
    assert "9001_next" in other.applied


def test_an_upgrade_does_not_begin_without_disk_space(upgrading, monkeypatch):
    before = upgrading.applied
    upgrading.add("9001_next", NEXT)
    with monkeypatch.context() as patch:
        patch.setattr(upgrade_backups, "free_bytes", lambda _: 1 << 10)
        with pytest.raises(OperatorError, match=r"1 KiB \(1024 bytes\) are free, so .* are missing"):
            upgrading.start()
    assert upgrading.applied == before
    assert upgrading.in_folder == 0
    upgrading.start()


def test_an_incomplete_backup_is_removed(upgrading, monkeypatch):
    before = upgrading.applied
    upgrading.add("9001_next", NEXT)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("socialpub.core.durable_files.flush", full)
        with pytest.raises(OperatorError, match="No space left on device"):
            upgrading.start()
    assert upgrading.applied == before
    assert upgrading.in_folder == 0


DIE_WHEN_COPIED = """
from socialpub.core import durable_files
durable_files.{0} = lambda *_: __import__("os").kill(__import__("os").getpid(), 9)
"""
UPGRADE = """
import sys
from pathlib import Path
from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade
from socialpub.db.connection import Database
from socialpub.runtime import build
{0}
upgrade.MIGRATIONS = Path(sys.argv[2])
build(Settings(data_dir=Path(sys.argv[1]))).close()
"""


def killed(upgrading: Upgrading, patch: str = "") -> None:
    """Run an upgrade in a process that dies."""
    command = [sys.executable, "-c", UPGRADE.format(patch), upgrading.settings.data_dir, upgrading.migrations]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("where", ["flush", "flush_folder"])
def test_an_upgrade_that_was_killed_during_the_backup_begins_again(upgrading, where):
    before = upgrading.applied
    upgrading.add("9001_next", NEXT)
    killed(upgrading, DIE_WHEN_COPIED.format(where))
    assert upgrading.applied == before
    assert upgrading.in_folder == 1
    upgrading.clock.forward(60)
    upgrading.start()
    assert upgrading.in_folder == 1, "what was half-written is gone"
    assert upgrading.copies == [max(before)]
    assert "9001_next" in upgrading.applied


def test_an_upgrade_that_was_killed_in_a_migration_keeps_earlier_migrations(upgrading):
    upgrading.add("9001_next", NEXT)
    upgrading.add("9002_dying", DYING.replace("extra", "more"))
    before = upgrading.applied
    killed(upgrading)
    assert upgrading.applied == before | {"9001_next"}
    with closing(sqlite3.connect(upgrading.settings.database_file)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    upgrading.add("9002_dying", NEXT.replace("extra", "more"))
    upgrading.start()
    assert set(upgrading.copies) == {"9001_next", max(before)}


def test_an_upgrade_reports_its_steps_and_logs_its_sizes(upgrading, caplog):
    upgrading.add("9001_next", NEXT)
    upgrading.add("9002_more", NEXT.replace("extra", "more"))
    with caplog.at_level("INFO", "socialpub.db"):
        watched = Watched().run(upgrading.start)
    assert watched.steps == [
        "Copying the database",
        "Checking the copy of the database",
        "Updating the database, step 1 of 2",
        "Updating the database, step 2 of 2",
    ]
    watched.check()
    begun, *_, ended = caplog.records
    assert begun.getMessage() == "backing up the database before the upgrade"
    assert ended.getMessage() == "upgraded the database"
    assert vars(begun)["fields"]["size_bytes"] > 100_000
    assert Watched().run(upgrading.start).steps == [], "nothing is left to do"


def test_ctrl_c_ends_a_migration_at_once_and_undoes_it(upgrading):
    upgrading.add("9001_next", NEXT)
    # Another thread prints, because Ctrl-C must come while SQLite runs, not while it calls Python.
    begin = (
        "    import threading\n"
        "    later = threading.Timer(0.2, print, ('begun',), {'flush': True})\n"
        "    db.connection().create_function('begun', 0, later.start)\n"
    )
    endless = (
        "INSERT INTO more WITH RECURSIVE n(i) AS (SELECT begun() UNION ALL SELECT ifnull(i, 0) + 1 FROM n) "
        "SELECT max(i) FROM n"
    )
    upgrading.add("9002_endless", NEXT.replace("extra", "more") + begin + f"    db.execute_sql('{endless}')\n")
    arguments = [UPGRADE.format(""), upgrading.settings.data_dir, upgrading.migrations]
    command = [*DEFAULT_SIGNALS, sys.executable, "-c", *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], **pipes) as process:
        while process.stdout.readline() != "begun\n":  # type: ignore[union-attr]
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT, said
    assert "9001_next" in upgrading.applied and "9002_endless" not in upgrading.applied
    upgrading.add("9002_endless", NEXT.replace("extra", "more"))
    upgrading.clock.forward(60)
    upgrading.start()
    assert "9002_endless" in upgrading.applied
