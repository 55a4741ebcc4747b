"""Periodic tasks run again after their interval, also if they failed or somebody set the clock."""

import pytest

from socialpub.accounts import upkeep
from socialpub.core.errors import Unavailable
from socialpub.worker.tasks import Background


def due(background, *names):
    """The tasks of these names that are due. Huey's scheduler looks every second, and enqueues what is due."""
    return [task for task in background.huey.read_periodic(None) if task.name in names]


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), KeyError("nobody foresaw it")])
def test_a_task_that_fails_runs_again_at_its_next_time(rt, clock, monkeypatch, error):
    def fails(_):
        raise error

    monkeypatch.setattr(upkeep, "revoke_disconnected", fails)
    background = Background(rt)
    (task,) = due(background, "revocation")
    background.huey.execute(task)
    assert due(background, "revocation") == []
    clock.forward(10)
    assert len(due(background, "revocation")) == 1


def test_a_clock_that_is_set_moves_no_task(rt, clock):
    background = Background(rt)
    (task,) = due(background, "holds")
    background.huey.execute(task)
    clock.jump(-3000 * 86400)
    assert due(background, "holds") == []
    clock.forward(60)
    assert len(due(background, "holds")) == 1
