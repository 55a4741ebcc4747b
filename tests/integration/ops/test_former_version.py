"""What is left of the version before an upgrade, and what going back to it needs."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from socialpub.core.errors import OperatorError
from socialpub.db import upgrade, upgrade_backups
from socialpub.db.connection import open_file
from socialpub.ops.backup import rollback
from socialpub.runtime import Runtime

FIRST = sorted(upgrade.list_known())
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An environment of a version with these migrations, one minute newer than the previous one."""
    built = iter(range(0, 6000, 60))

    def environment(name: str, version: str, migrations: list[str] = FIRST) -> Path:
        folder = tmp_path / "environments" / name
        site = folder / "lib/python3.13/site-packages"
        known = site / "socialpub/db/migrations"
        known.mkdir(parents=True)
        for migration in migrations:
            (known / f"{migration}.py").touch()
        (site / f"socialpub-{version}.dist-info").mkdir()
        (site / f"socialpub-{version}.dist-info/METADATA").write_text(f"Name: socialpub\nVersion: {version}\n\nText\n")
        (folder / "pyvenv.cfg").touch()
        at = next(built)
        os.utime(folder / "pyvenv.cfg", (at, at))
        return folder

    return environment


def test_the_former_version_is_the_last_older_one_that_is_another_version(make: Make) -> None:
    make("1.0.0", "1.0.0")
    former = make("1.1.0", "1.1.0")
    make("1.2.0", "1.2.0")
    in_use = make("1.2.0-2", "1.2.0")
    make("1.3.0", "1.3.0")
    make("1.4.0.partial", "1.4.0")
    found = rollback.find_former(in_use)
    assert found is not None
    assert (found.folder, found.version) == (former, "1.1.0")


def test_the_first_version_has_no_former_one_and_a_newer_one_is_none(make: Make) -> None:
    in_use = make("1.0.0", "1.0.0")
    make("1.1.0", "1.1.0")
    assert rollback.find_former(in_use) is None


def test_an_environment_that_no_service_uses_has_no_former_version(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make("1.0.0", "1.0.0")
    in_use = make("1.1.0", "1.1.0")
    monkeypatch.setattr(sys, "prefix", str(in_use))
    assert rollback.former_of_this_service() is None
    (in_use.parents[1] / ".venv").symlink_to(in_use)
    found = rollback.former_of_this_service()
    assert found is not None
    assert found.version == "1.0.0"


def test_a_version_that_knows_the_database_needs_no_backup(rt: Runtime, make: Make) -> None:
    former = rollback.read_environment(make("1.0.0", "1.0.0"))
    assert former is not None
    assert rollback.backup_needed(former, rt.settings) is None


def test_another_version_needs_the_backup_of_its_own_last_migration(rt: Runtime, make: Make) -> None:
    former = rollback.read_environment(make("1.0.0", "1.0.0"))
    assert former is not None
    with open_file(rt.settings.database_file, "rw") as connection:
        connection.execute_sql("INSERT INTO schema_migration (name, applied) VALUES ('0002_next', '')")
        with pytest.raises(OperatorError, match=r"1\.0\.0 does not know the current database \(0002_next\)"):
            rollback.backup_needed(former, rt.settings)
        made = upgrade_backups.create(connection, rt.settings.database_file, FIRST[-1], rt.now(), "1.1.0")
        upgrade_backups.create(connection, rt.settings.database_file, "0002_next", rt.now(), "1.2.0")
    needed = rollback.backup_needed(former, rt.settings)
    assert needed is not None
    assert needed.path == made.path
