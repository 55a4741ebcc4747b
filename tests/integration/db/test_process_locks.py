"""Locks between processes, also if another process acts between opening and locking a file."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from socialpub.core.locks import FileLock
from socialpub.db import process_lock
from socialpub.db.process_lock import ProcessLock


@pytest.fixture
def before_next_flock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Call this function once, before the next file is locked."""
    flock, waiting = fcntl.flock, list[Callable[[], object]]()

    def interrupted(fd: int, how: int) -> None:
        if waiting:
            waiting.pop(0)()
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", interrupted)
    return waiting.append


BeforeNextFlock = Callable[[Callable[[], object]], None]


def test_a_starting_process_is_alive(tmp_path: Path, before_next_flock: BeforeNextFlock) -> None:
    other = ProcessLock(tmp_path, "web-1")

    def looks() -> None:
        other.forget_dead()
        assert not other.is_alive("worker-1"), "no row names it yet"

    before_next_flock(looks)
    worker = ProcessLock(tmp_path, "worker-1")
    assert other.is_alive("worker-1"), "else its deliveries are taken over while it publishes them"
    assert other.ended_in_order("worker-1")
    assert process_lock.living_processes(tmp_path) == ["web-1", "worker-1"]
    worker.close()
    assert not other.is_alive("worker-1")
    assert other.ended_in_order("worker-1")


def test_the_next_process_removes_unfinished_lock_files(tmp_path: Path) -> None:
    (tmp_path / "worker-1.0a1b.new").touch()
    starting = FileLock(tmp_path / "worker-2.0a1b.new")
    assert starting.try_acquire()
    ProcessLock(tmp_path, "web-1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web-1.lock", "worker-2.0a1b.new"]


def test_a_process_that_ends_in_order_during_a_check_has_not_died(
    tmp_path: Path, before_next_flock: BeforeNextFlock
) -> None:
    other, command = ProcessLock(tmp_path, "web-1"), ProcessLock(tmp_path, "cli-1")
    before_next_flock(command.close)
    assert not other.is_alive("cli-1")
    assert other.ended_in_order("cli-1")


def test_two_simultaneous_checks_do_not_disturb_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = ProcessLock(tmp_path, "web-1"), ProcessLock(tmp_path, "web-2")
    (tmp_path / "worker-1.lock").touch()
    flock, found = fcntl.flock, list[bool]()

    def both(fd: int, how: int) -> None:
        flock(fd, how)
        monkeypatch.undo()
        found.append(other.is_alive("worker-1"))

    monkeypatch.setattr(fcntl, "flock", both)
    assert not one.is_alive("worker-1")
    assert found == [False]


def test_a_lock_file_that_is_replaced_before_it_is_locked_has_one_holder(
    tmp_path: Path, before_next_flock: BeforeNextFlock
) -> None:
    lock, other = FileLock(tmp_path / "one.lock"), FileLock(tmp_path / "one.lock")

    def replaced() -> None:
        lock.path.unlink()
        assert other.try_acquire()

    before_next_flock(replaced)
    assert not lock.try_acquire()
    assert other.is_held
    before_next_flock(lock.path.unlink)
    other.release()
    assert lock.try_acquire()
    assert lock.is_held, "it holds the file that others see"


def test_a_lock_file_that_another_process_removed_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_to, moves = FileLock.move_to, list[Path]()

    def removed_before(lock: FileLock, path: Path) -> None:
        moves.append(lock.path)
        if len(moves) == 1:
            lock.path.unlink()  # another process looked before the file was locked, and removes it only now
        move_to(lock, path)

    monkeypatch.setattr(FileLock, "move_to", removed_before)
    worker = ProcessLock(tmp_path, "worker-1")
    assert len(moves) == 2
    assert ProcessLock(tmp_path, "web-1").is_alive(worker.name)
