"""What a killed backup left is removed, wherever its owner wanted it; never what a process still works in."""

import os
from pathlib import Path

import pytest

from socialpub.ops.backup import create, schedule
from socialpub.ops.backup.schedule import UNFINISHED
from socialpub.runtime import Runtime
from socialpub.worker import tasks
from tests.support.copies import copy_of


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def killed(rt: Runtime, disk: Path) -> Path:
    """The leftovers of a power failure during a backup."""
    with create.temp_dir_in(rt.settings, disk) as scratch:
        note = rt.settings.run_dir / scratch.name
        content = note.read_bytes()
    scratch.mkdir()
    (scratch / "secret.key").write_bytes(b"x")
    note.write_bytes(content)
    return scratch


def left(rt: Runtime, disk: Path) -> list[str]:
    return sorted(path.name for path in (*disk.iterdir(), *rt.settings.run_dir.glob(f"{create.PREFIX}*")))


def test_the_next_backup_and_housekeeping_remove_what_one_that_was_killed_left(rt: Runtime, disk: Path) -> None:
    killed(rt, disk)
    assert len(left(rt, disk)) == 2
    tasks.clean_backups(rt)
    assert left(rt, disk) == []
    killed(rt, disk)
    copy_of(rt, disk.parent)
    assert left(rt, disk) == []


def test_a_backup_that_is_being_made_stays(rt: Runtime, disk: Path) -> None:
    with create.temp_dir_in(rt.settings, disk) as scratch:
        assert scratch.stat().st_mode & 0o777 == 0o700
        tasks.clean_backups(rt)
        create.clean_temp_dirs(rt.settings, sees_all=True)
        assert scratch.is_dir()
    assert left(rt, disk) == []


def test_a_folder_that_the_service_does_not_see_is_left_to_a_process_that_sees_it(rt: Runtime, disk: Path) -> None:
    killed(rt, disk)
    hidden = disk.rename(disk.with_name("unmounted"))
    tasks.clean_backups(rt)
    hidden.rename(disk)
    create.clean_temp_dirs(rt.settings, sees_all=True)
    assert left(rt, disk) == []


def test_a_note_removes_nothing_but_what_it_is_named_after(rt: Runtime, disk: Path) -> None:
    scratch = killed(rt, disk)
    (disk / "mine").mkdir()
    (rt.settings.run_dir / scratch.name).write_bytes(os.fsencode(disk / "mine"))
    create.clean_temp_dirs(rt.settings, sees_all=True)
    assert sorted(path.name for path in disk.iterdir()) == [scratch.name, "mine"]


def test_a_scheduled_backup_that_was_killed_is_gone_without_another_one(rt: Runtime) -> None:
    made = schedule.make_backup(rt)
    rest = made.path.with_name(f"{UNFINISHED}2026-10-11T09-00-00Z")
    rest.mkdir()
    tasks.clean_backups(rt)
    assert not rest.exists()
    assert made.path.exists()
