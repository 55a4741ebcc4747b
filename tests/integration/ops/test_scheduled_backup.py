"""Scheduled backups: a folder for each, shared media, and removal of old backups."""

import os
import sqlite3
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.settings import loader
from socialpub.db.backup_format import Seal
from socialpub.db.tables import audit_log
from socialpub.media.files import Files
from socialpub.ops.backup import create, last_backup, schedule, verify
from socialpub.ops.backup.schedule import MadeBackup
from socialpub.runtime import Runtime, build
from tests.samples import media
from tests.support.copies import file_of, put_back
from tests.support.sandbox_http import artifact
from tests.support.select import select_value

DAY = 86400


@pytest.fixture
def another_disk(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backups are on another disk than the media."""
    link = Path.hardlink_to

    def refuses(self: Path, target: Path) -> None:
        if rt.settings.media_dir in target.parents:
            raise OSError(18, "Invalid cross-device link")
        link(self, target)

    monkeypatch.setattr(Path, "hardlink_to", refuses)
    monkeypatch.setattr(create, "check_space", lambda *_: None)


def configured(rt: Runtime, **backup_section: Any) -> None:
    section = rt.settings.backup.model_copy(update=backup_section)
    rt.settings = rt.settings.model_copy(update={"backup": section})


def in_copy(made: MadeBackup, stored: Path) -> Path:
    return made.path / "media" / stored.parent.name / stored.name


def names(rt: Runtime) -> list[str]:
    return sorted(path.name for path in rt.settings.backup_dir.iterdir())


# --- one -------------------------------------------------------------------------------------------------------------


def test_a_backup_in_a_folder_is_checked_and_restored_like_one_in_a_file(rt, stored_image, tmp_path, clock):
    made = schedule.make_backup(rt, with_secret=True)
    assert made.path == rt.settings.data_dir / "backups" / "2026-10-12T09-00-00Z"
    assert made.path.stat().st_mode & 0o777 == 0o700
    found = verify.verify_backup(made.path, rt.secrets)
    assert found == made.summary
    assert (found.posts, found.media_files, found.seal) == (1, 1, Seal.FITS)
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=made.path, check=True, capture_output=True)
    assert len(checked.stdout.splitlines()) == 4
    settings = put_back(made.path, tmp_path / "new", clock)
    with closing(build(settings, clock=clock)) as other:
        assert (
            settings.media_dir / stored_image.parent.name / stored_image.name
        ).read_bytes() == stored_image.read_bytes()
        assert select_value(other.db, "SELECT count(*) FROM post") == 1
        assert select_value(other.db, "SELECT value FROM appliance WHERE name = 'paused_at'") == other.stamp()


def damage_file(name: str) -> Callable[[Path], None]:
    def change(copy: Path) -> None:
        path = next(copy.rglob(name))
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.unlink()
        path.write_bytes(content)

    return change


def list_elsewhere(copy: Path) -> None:
    (copy.parent / "stray").write_bytes(b"")
    (copy / "SEAL").unlink()
    with (copy / "SHA256SUMS").open("ab") as file:
        file.write(b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  ../stray\n")


def replace_by_a_fifo(copy: Path) -> None:
    path = next(copy.rglob("*.png"))
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (damage_file("socialpub.db"), "damaged or incomplete: its 'socialpub.db'"),
        (damage_file("*.png"), "damaged or incomplete: its 'media/"),
        (damage_file("socialpub-backup.json"), "damaged or incomplete|another secret"),
        (damage_file("SHA256SUMS"), "damaged or incomplete: it"),
        (damage_file("SEAL"), r"was changed without the secret\.key"),
        (lambda copy: next(copy.rglob("*.png")).unlink(), "damaged or incomplete: it lacks 'media/"),
        (lambda copy: (copy / "SHA256SUMS").unlink(), "damaged or incomplete: SHA256SUMS is missing"),
        (lambda copy: (copy / "socialpub-backup.json").unlink(), "is not a backup"),
        (lambda copy: (copy / "SEAL").unlink(), "is not signed"),
        (list_elsewhere, "it contains '../stray'"),
        (replace_by_a_fifo, "it lacks 'media/"),
    ],
)
def test_what_was_changed_in_a_folder_is_refused(rt, stored_image, tmp_path, clock, change, reported):
    made = schedule.make_backup(rt, with_secret=True)
    change(made.path)
    with pytest.raises(verify.InvalidBackup, match=reported):
        verify.verify_backup(made.path, rt.secrets)
    (tmp_path / "new").mkdir()
    key = tmp_path / "new" / "data" / "secret.key"
    key.parent.mkdir()
    key.write_bytes(rt.settings.secret_key_file.read_bytes())
    with pytest.raises(OperatorError, match=reported):
        put_back(made.path, tmp_path / "new", clock)
    assert [path.name for path in key.parent.iterdir()] == ["secret.key"]


def test_what_is_not_listed_is_no_part_of_the_backup(rt, stored_image):
    made = schedule.make_backup(rt)
    (made.path / "media" / ".DS_Store").write_bytes(b"a file manager was here")
    assert verify.verify_backup(made.path, rt.secrets) == made.summary


def test_a_folder_of_backups_is_no_backup_but_names_one(rt):
    made = schedule.make_backup(rt)
    with pytest.raises(verify.InvalidBackup) as refused:
        verify.verify_backup(made.path.parent)
    assert str(made.path) in (refused.value.hint or "")


def test_a_damaged_database_is_no_backup_and_takes_no_good_ones_place(rt, clock):
    configured(rt, keep=2)
    good = schedule.make_backup(rt)
    clock.forward(DAY)
    with closing(sqlite3.connect(rt.db.path)) as broken, broken:
        broken.execute("PRAGMA writable_schema = 1")
        broken.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE type = 'index' AND tbl_name = 'post'")
    with pytest.raises(OperatorError, match=r"is damaged: .* No backup was written"):
        schedule.make_backup(rt)
    assert names(rt) == [good.path.name]
    assert "damaged" in str(last_backup.load(rt.db).failure)


# --- what is new -----------------------------------------------------------------------------------------------------


def test_media_take_no_room_twice_and_are_read_once(rt, stored_image, tmp_path, clock, monkeypatch):
    first = schedule.make_backup(rt)
    assert in_copy(first, stored_image).stat().st_ino == stored_image.stat().st_ino
    assert first.scheduled.new_bytes == (first.path / "socialpub.db").stat().st_size
    assert first.scheduled.size_bytes == first.scheduled.new_bytes + stored_image.stat().st_size
    clock.forward(DAY)
    read = []
    digest_of = schedule.compute_digest
    monkeypatch.setattr(schedule, "compute_digest", lambda path: read.append(path.suffix) or digest_of(path))
    added = file_of(rt, artifact(rt, media.png(tmp_path / "b.png"), "image/png"))
    second = schedule.make_backup(rt)
    assert read == ["", ".png"], "the list of the previous backup, and the new image alone"
    assert in_copy(second, added).stat().st_ino == added.stat().st_ino
    verify.verify_backup(second.path, rt.secrets)
    stored_image.unlink()
    assert in_copy(second, stored_image).is_file(), "what the appliance removes stays in its copies"


def test_on_another_disk_only_what_is_new_is_written(rt, stored_image, tmp_path, clock, another_disk):
    first = schedule.make_backup(rt)
    assert in_copy(first, stored_image).stat().st_ino != stored_image.stat().st_ino
    assert first.scheduled.new_bytes == first.scheduled.size_bytes
    clock.forward(DAY)
    added = file_of(rt, artifact(rt, media.png(tmp_path / "b.png"), "image/png"))
    second = schedule.make_backup(rt)
    assert in_copy(second, stored_image).stat().st_ino == in_copy(first, stored_image).stat().st_ino
    database = (second.path / "socialpub.db").stat().st_size
    assert second.scheduled.new_bytes == database + added.stat().st_size
    for copy in (first, second):
        verify.verify_backup(copy.path, rt.secrets)


def test_sums_of_a_backup_that_somebody_changed_are_not_believed(rt, stored_image, clock):
    first = schedule.make_backup(rt)
    sums = first.path / "SHA256SUMS"
    sums.write_bytes(sums.read_bytes().replace(b"a", b"b"))
    clock.forward(DAY)
    verify.verify_backup(schedule.make_backup(rt).path, rt.secrets)


# --- how many stay ---------------------------------------------------------------------------------------------------


def test_the_newest_backups_stay_and_what_was_just_made(rt, clock):
    configured(rt, keep=3)
    for _ in range(4):
        made = schedule.make_backup(rt)
        clock.forward(DAY)
    assert made.removed == 1
    assert [name[:10] for name in names(rt)] == ["2026-10-13", "2026-10-14", "2026-10-15"]
    clock.forward(-40 * DAY)
    early = schedule.make_backup(rt)
    assert early.path.exists(), "however the clock was set, what was just made is not removed"
    assert len(names(rt)) == 3


def test_only_our_own_folders_are_ever_removed(rt, clock):
    configured(rt, keep=2)
    made = schedule.make_backup(rt)
    folder = made.path.parent
    foreign = folder / "2026-10-01T09-00-00Z"
    foreign.mkdir()
    (foreign / "socialpub-backup.json").write_bytes(
        (made.path / "socialpub-backup.json").read_bytes().replace(rt.secrets.check_value.encode(), b"another")
    )
    mine = folder / "2026-10-02T09-00-00Z"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    (folder / "2026 summer").mkdir()
    (folder / "2026-10-03T09-00-00Z").symlink_to(made.path)
    others = folder / ".unfinished-00000000-2026-10-12T09-00-00Z"
    others.mkdir()
    for _ in range(2):
        clock.forward(DAY)
        schedule.make_backup(rt)
    clock.forward(DAY)
    assert schedule.make_backup(rt).removed == 1
    assert len(names(rt)) == 7
    assert (mine / "notes.txt").exists()
    assert not made.path.exists()


def test_what_a_killed_run_left_is_removed_by_the_next(rt, stored_image, clock):
    made = schedule.make_backup(rt)
    made.path.rename(made.path.with_name(schedule._unfinished(rt) + made.path.name))
    clock.forward(DAY)
    next_one = schedule.make_backup(rt)
    assert names(rt) == [next_one.path.name]


def test_two_within_a_second_have_two_names(rt):
    first, second = schedule.make_backup(rt), schedule.make_backup(rt)
    assert first.path != second.path
    assert names(rt) == [first.path.name, second.path.name]


def test_two_at_once_are_one(rt):
    with (
        FileLock(rt.settings.run_dir / "backup.lock"),
        pytest.raises(schedule.BackupInProgress, match="already being made"),
    ):
        schedule.make_backup(rt)
    assert last_backup.load(rt.db).failed_at is None, "the other process records its result"
    schedule.make_backup(rt)


# --- what fails ------------------------------------------------------------------------------------------------------


def test_media_that_cannot_be_linked_need_room_too(rt, stored_image, monkeypatch):
    def refuses(self: Path, target: Path) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuses)
    floor, rows = int(rt.settings.health.disk_floor_bytes), create.rows_bytes(rt)
    monkeypatch.setattr(Files, "free_bytes", lambda _: floor + rows)
    media.pad(stored_image, rows + 1)
    with pytest.raises(OperatorError, match="disk_floor_bytes"):
        schedule.make_backup(rt)
    assert names(rt) == []
    monkeypatch.setattr(Files, "free_bytes", lambda _: floor + 100_000_000)
    made = schedule.make_backup(rt)
    assert made.scheduled.new_bytes == made.scheduled.size_bytes
    verify.verify_backup(made.path, rt.secrets)


def test_a_disk_that_becomes_full_leaves_no_half_backup(rt, stored_image, monkeypatch, another_disk):
    def full(file: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(schedule.durable_files, "flush", full)
    with pytest.raises(OperatorError, match="No space left on device"):
        schedule.make_backup(rt)
    monkeypatch.undo()
    assert names(rt) == []
    assert "No space left" in str(last_backup.load(rt.db).failure)


def test_a_disk_that_is_not_mounted_is_noticed(rt, tmp_path):
    (tmp_path / "usb").mkdir()
    configured(rt, folder=str(tmp_path / "usb" / "copies"))
    with pytest.raises(OperatorError, match="does not exist") as refused:
        schedule.make_backup(rt)
    assert "Mount its disk" in (refused.value.hint or "")
    assert list((tmp_path / "usb").iterdir()) == []
    (tmp_path / "usb" / "copies").mkdir()
    assert schedule.make_backup(rt).path.parent == tmp_path / "usb" / "copies"


# --- what follows ----------------------------------------------------------------------------------------------------


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_the_command_gets_the_backup_and_none_of_our_settings(rt, tmp_path, monkeypatch):
    monkeypatch.setenv("SOCIALPUB_METRICS__TOKEN", "a token")
    monkeypatch.setenv("RESTIC_REPOSITORY", "/somewhere")
    monkeypatch.setenv("SOCIALPUB_CONFIG", "/etc/socialpub/config.toml")
    reported = tmp_path / "reported"
    code = f"import os, sys; open({str(reported)!r}, 'w').write(repr((sys.argv[1:], dict(os.environ))))"
    configured(rt, after=(*python(code), "{backup}", "--tag={backup}; rm -rf /"))
    made = schedule.make_backup(rt)
    arguments, environment = literal_eval(reported.read_text())
    assert arguments == [str(made.path), f"--tag={made.path}; rm -rf /"]
    assert environment["SOCIALPUB_BACKUP"] == str(made.path)
    assert environment["RESTIC_REPOSITORY"] == "/somewhere"
    assert environment["SOCIALPUB_CONFIG"] == "/etc/socialpub/config.toml"
    assert "SOCIALPUB_METRICS__TOKEN" not in environment
    (tmp_path / "config.toml").write_text("")
    loader.load(tmp_path / "config.toml", {"SOCIALPUB_BACKUP": environment["SOCIALPUB_BACKUP"]})


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        (python("print('no route to host'); raise SystemExit(3)"), r"exit code 3\. Its output: no route to host"),
        (("/nowhere/restic", "backup"), "'/nowhere/restic' cannot be run: No such file or directory"),
        (python("import os; os.kill(os.getpid(), 9)"), "ended by signal 9"),
        (python("print('password: hunter2-hunter2'); raise SystemExit(1)"), r"Its output: password: \*\*\*\*"),
        (
            python("print(*(f'frame {n}' for n in range(5000)), 'the end', sep='\\n'); raise SystemExit(1)"),
            r"(?s)Its output: .*frame 4999\nthe end$",
        ),
    ],
)
def test_a_command_that_fails_is_a_backup_that_failed(rt, command, reported):
    configured(rt, after=command)
    with pytest.raises(OperatorError, match=reported):
        schedule.make_backup(rt)
    copy = last_backup.load(rt.db)
    assert copy.made_at is None
    assert copy.failed_at == rt.stamp()
    assert "hunter2" not in str(copy.failure)
    assert len(names(rt)) == 1, "the copy itself is good, and stays"
    assert audit_log.load_page(rt.db).entries[0].action == "backup.failed"
    configured(rt, after=())


def test_a_command_that_hangs_is_ended_with_everything_it_started(rt, tmp_path, monkeypatch):
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    grandchild = f"import signal, time; held = open({str(fifo)!r}, 'w'); held.write('x'); held.flush(); signal.pause()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"

    class Impatient(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if timeout == schedule.AFTER_SECONDS:  # our time limit: over as soon as the grandchild is there
                os.set_blocking(reader, True)
                while not os.read(reader, 1):
                    pass
                raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait(timeout)

    monkeypatch.setattr(schedule.subprocess, "Popen", Impatient)
    configured(rt, after=python(code))
    with pytest.raises(OperatorError, match="took longer than 6 hours"):
        schedule.make_backup(rt)
    assert os.read(reader, 1) == b"", "no process holds the lock"
    os.close(reader)
