"""Background tasks: when they are enqueued, and scheduled backups."""

import subprocess
from datetime import timedelta

import pytest

from socialpub.accounts import upkeep
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.core.settings.schema import AlertKind
from socialpub.ops import alerts, health
from socialpub.ops.backup import schedule
from socialpub.ops.doctor import checks
from socialpub.ops.health import Level
from socialpub.worker import tasks
from socialpub.worker.reconciler import Reconciler
from socialpub.worker.tasks import REST_SECONDS, ScheduledBackups
from tests.support.queue_threads import background_tasks


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), KeyError("unexpected")])
def test_a_task_that_fails_ends_no_thread_and_runs_again(rt, monkeypatch, error):
    calls = []

    def fails(_):
        calls.append(1)
        raise error

    monkeypatch.setattr(upkeep, "revoke_disconnected", fails)
    with background_tasks(rt) as tasks:
        tasks.run("revocation")
        tasks.run("revocation")
    assert len(calls) == 2
    assert rt.running_tasks == {}


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), KeyError("unexpected")])
def test_a_task_that_fails_five_times_in_a_row_is_reported_until_it_succeeds(rt, clock, monkeypatch, error):
    left = [5]

    def fails(*_):
        left[0] -= 1
        if left[0] >= 0:
            raise error

    monkeypatch.setattr(upkeep, "renew_idle_tokens", fails)

    def run_again():
        tasks.run("token renewal")
        rt.write(health.record_heartbeat)
        clock.forward(60)
        rt.write(health.record_heartbeat)
        readiness = health.check_without_writing(rt)
        assert readiness.reasons == [], "a failing task does not make the appliance unready"
        alerted = [one.sentence for one in alerts.list_alerts(rt, Surface.SHELL) if one.kind is AlertKind.WORKER]
        found = [one.message for one in checks.check(rt) if one.subject == "worker" and one.level is Level.PROBLEM]
        assert alerted == found == [sentence for sentence in (readiness.failing_tasks,) if sentence]
        return readiness.failing_tasks

    with background_tasks(rt) as tasks:
        assert [run_again() for _ in range(4)] == [None] * 4
        assert "5 times in a row, or hang: token renewal." in run_again()
        assert run_again() is None


def test_frequent_tasks_are_enqueued_by_the_reconciler_at_their_interval(rt, clock):
    with background_tasks(rt) as tasks:
        reconciler, queues = Reconciler(rt, tasks), tasks.queues
        queues.listen(deliver=tasks.deliver, run=tasks.run)
        frequent = [task for task in tasks.all.values() if task.every_seconds is not None]
        reconciler.once()
        assert queues.background.pending_count() == len(frequent)
        queues.background.storage.flush_queue()
        clock.jump(-3000 * 86400)
        clock.forward(1)
        reconciler.once()
        assert queues.background.pending_count() == sum(task.every_seconds <= 1 for task in frequent)


# --- scheduled backups -----------------------------------------------------------------------------------------------


HOUR = 3600


class CopyCommand:
    """A fake process that runs under the control of the test."""

    def __init__(self, arguments, **_):
        self.arguments = arguments
        self.pid = 0
        self.returncode = None
        self.ended_by_us = False

    def poll(self):
        return self.returncode

    def terminate(self):
        self.ended_by_us, self.returncode = True, -15

    def wait(self, _):
        """It ends at once."""


@pytest.fixture
def started(rt, monkeypatch):
    found = []

    def start(arguments, **options):
        found.append(CopyCommand(arguments, **options))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(tasks.os, "setpriority", lambda *_: None)
    backup = rt.settings.backup.model_copy(update={"every": timedelta(hours=24)})
    rt.settings = rt.settings.model_copy(update={"backup": backup})
    return found


def run(rt, command):
    try:
        schedule.make_backup(rt)
    except OperatorError:
        command.returncode = 1
    else:
        command.returncode = 0


def test_a_backup_is_created_every_day_and_one_at_a_time(rt, clock, started):
    copies = ScheduledBackups()
    copies.check(rt)
    copies.check(rt)
    assert [command.arguments[-1] for command in started] == ["backup"]
    run(rt, started[0])
    for _ in range(23):
        clock.forward(HOUR)
        copies.check(rt)
    assert len(started) == 1
    clock.forward(HOUR)
    copies.check(rt)
    assert len(started) == 2


def test_a_failed_backup_is_retried_after_an_hour(rt, clock, started):
    (rt.settings.data_dir / "backups").write_text("in the way")
    copies = ScheduledBackups()
    copies.check(rt)
    run(rt, started[0])
    assert started[0].returncode == 1
    clock.forward(HOUR - 1)
    copies.check(rt)
    assert len(started) == 1
    (rt.settings.data_dir / "backups").unlink()
    clock.forward(REST_SECONDS)
    copies.check(rt)
    assert len(started) == 2


def test_a_clock_that_is_set_back_does_not_delay_backups_for_years(rt, clock, started):
    clock.jump(3000 * 24 * HOUR)
    schedule.make_backup(rt)
    clock.jump(-3000 * 24 * HOUR)
    copies = ScheduledBackups()
    copies.check(rt)
    assert len(started) == 1


def test_a_stop_ends_a_running_backup(rt, started):
    copies = ScheduledBackups()
    copies.check(rt)
    copies.stop()
    assert started[0].ended_by_us
