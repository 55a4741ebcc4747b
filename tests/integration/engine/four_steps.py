"""A plan with a step of every kind: one prepares, one asks before the commit, one commits, one asks after it."""

from enum import StrEnum

from socialpub.db.states import State
from socialpub.providers.base import Done, Kind, Published
from tests.support.appliance import message_of, state_of, status_of
from tests.support.scripted_network import ScriptedNetwork

LOOKS = 10
"""At an account that does not show the post: after 5, 20, 50 and 110 seconds, every minute and a half from then on, and
when ten minutes are over."""


class Place(StrEnum):
    """By the name of its step."""

    PREPARE = "upload"
    POLL_BEFORE = "await_processing"
    COMMIT = "create_post"
    POLL_AFTER = "await_outcome"


class FourSteps(ScriptedNetwork):
    """The commit makes the post, and the next step returns its id."""

    def __init__(self, clock):
        super().__init__(
            (Place.PREPARE, Kind.PREPARE),
            (Place.POLL_BEFORE, Kind.POLL),
            (Place.COMMIT, Kind.COMMIT),
            (Place.POLL_AFTER, Kind.POLL),
        )
        self.clock = clock
        self.called_at = {}

    def run(self, step, job):
        self.called_at.setdefault(step, []).append(self.clock.monotonic())
        return super().run(step, job)

    def goes_well(self, step, job):
        if step == Place.COMMIT:
            self.publish(job.content.text)
        if step == Place.POLL_AFTER:
            return Published(str(len(self.effects)))
        return Done({**job.memo, step: True})

    def recover(self, job):
        if self.effects and not self.results.get("recover"):
            self.results["recover"] = [Done({**job.memo, Place.COMMIT: True})]
        return super().recover(job)


def assert_it_is_true(rt, network, post):
    match state_of(rt, post):
        case State.PUBLISHED:
            assert len(network.effects) == 1
        case State.FAILED:
            assert network.effects == []
            assert not message_of(rt, post).startswith("Outcome unknown:")
        case State.UNCONFIRMED:
            assert len(network.effects) <= 1
            assert message_of(rt, post).startswith("Outcome unknown: ")
        case state:
            raise AssertionError(f"not settled: {state}")
    assert status_of(rt, post) == "settled"
