"""Long operations report steps that rise to their total, and Ctrl-C ends them without leftovers."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from socialpub.core.settings.loader import Settings
from socialpub.db import backup_format, file_check
from socialpub.ops.backup import create, restore, schedule, verify
from socialpub.runtime import build
from tests.integration.ops.test_backup import files_in
from tests.support.appliance import accept, add_profile
from tests.support.select import select_value
from tests.support.watched import Watched

COPY = ["Copying the database", "Checking the copy of the database"]
READ = ["Reading the backup", "Checking the database of the backup"]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database of a test is small. In small steps, it reports as often as a large one."""
    monkeypatch.setattr(file_check, "STEPS", 10)
    monkeypatch.setattr(backup_format, "STEP_PAGES", 1)


def test_every_step_of_a_backup_and_a_restore_rises_to_its_total(rt, stored_image, tmp_path, clock):
    tar = tmp_path / "a.copy"
    new = Settings(data_dir=tmp_path / "new")
    stories: list[tuple[list[str], Callable[[], object]]] = [
        ([*COPY, "Writing the backup"], lambda: schedule.make_backup(rt)),
        ([*COPY, "Writing the backup", "Waiting for the disk"], lambda: create.write_backup(rt, tar, with_secret=True)),
        (READ, lambda: verify.verify_backup(tar)),
        (READ, lambda: verify.verify_backup(next(rt.settings.backup_dir.glob("2*")))),
        ([*READ, "Waiting for the disk"], lambda: restore.restore(tar, new, clock)),
    ]
    for steps, work in stories:
        watched = Watched().run(work)
        assert watched.steps == steps
        watched.check()
    build(new, clock=clock).close()


def test_posts_accepted_while_the_database_is_copied_are_not_in_the_copy(rt, tmp_path):
    profile = add_profile(rt)
    accept(rt, profile)
    accepted = 0

    def accept_another(done: int, total: int, step: str) -> bool:
        nonlocal accepted
        if step == COPY[0] and 0 < done < total and accepted <= pages:
            accept(rt, profile, body="x" * 3000)
            accepted += 1
        return False

    pages = select_value(rt.db, "PRAGMA page_count")
    Watched(accept_another).run(lambda: create.copy_database(rt, tmp_path / "copied.db"))
    assert 10 < accepted < pages, "the copy never starts again"
    with closing(sqlite3.connect(tmp_path / "copied.db")) as copied:
        assert copied.execute("SELECT count(*) FROM post").fetchone() == (1,)


@pytest.mark.parametrize("pressed_in", [*COPY, "Writing the backup", "Waiting for the disk", *READ])
def test_after_ctrl_c_nothing_is_left_and_the_next_try_works(rt, stored_image, tmp_path, clock, pressed_in):
    tar = tmp_path / "a.copy"
    new = Settings(data_dir=tmp_path / "new")

    def work() -> None:
        create.write_backup(rt, tar, with_secret=True)
        restore.restore(tar, new, clock)

    def press(done: int, total: int, step: str) -> bool:
        return step == pressed_in and (done > 0 or not total)

    before = files_in(rt.settings.run_dir)
    stopped = Watched(press).run(work)
    assert stopped.steps[-1] == pressed_in
    assert not new.data_dir.exists()
    assert list(tmp_path.glob("*.unfinished")) == [] and files_in(rt.settings.run_dir) == before
    tar.unlink(missing_ok=True)
    work()
    build(new, clock=clock).close()


def test_after_ctrl_c_a_scheduled_backup_leaves_nothing(rt, stored_image):
    for step in (*COPY, "Writing the backup"):
        Watched(lambda done, total, now, step=step: now == step and (done > 0 or not total)).run(
            lambda: schedule.make_backup(rt)
        )
        assert list(rt.settings.backup_dir.iterdir()) == []
    schedule.make_backup(rt)
