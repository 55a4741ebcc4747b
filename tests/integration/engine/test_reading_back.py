"""Looking at the account for what became of a commit."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import CannotTell, Published, Readback
from socialpub.providers.responses import NoAnswer
from tests.integration.engine.four_steps import LOOKS
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain


def test_the_second_reading_back_looks_since_the_first_call(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out"), NoAnswer("timed out")]
    since = []
    recover = network.recover

    def look(job):
        since.append(job.committed_at)
        return recover(job)

    network.recover = look
    accept(rt, profile)
    drain(rt, clock)
    assert len(since) == 2 * LOOKS
    assert len(set(since)) == 1
    assert network.jobs[1].unknown_before


@pytest.mark.parametrize(
    "other", ["See http://example.org", "See example.org", "See https://elsewhere.example/a", "@you See example.org"]
)
def test_posts_that_a_timeline_shows_alike_are_not_read_back_side_by_side(rt, network, profile, other):
    network.results["create_post"] = [NoAnswer("timed out")]
    accept(rt, profile, body="See https://example.org/")
    second = accept(rt, profile, body=other)
    drain(rt)
    assert network.asked == ["create_post"]
    assert state_of(rt, second) is State.QUEUED


def test_a_network_that_cannot_tell_leaves_the_outcome_unknown(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [CannotTell("Look at x.com/demo.")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked.count("create_post") == 1
    assert message_of(rt, post) == "Outcome unknown: timed out. Look at x.com/demo."


def test_reading_back_never_adopts_what_another_delivery_holds(rt, network, profile, clock):
    first = accept(rt, profile, body="same")
    drain(rt)
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback((Published("1"), Published("2")))]
    second = accept(rt, profile, body="same")
    drain(rt, clock)
    held = [r[0] for r in rt.reader.all("SELECT provider_post_id FROM delivery ORDER BY id")]
    assert (state_of(rt, first), state_of(rt, second)) == (State.PUBLISHED, State.PUBLISHED)
    assert held == ["1", "2"]


def test_nothing_of_equal_content_is_sent_while_one_is_being_read_back(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback(), Readback((Published("9"),))]
    first, second, other = accept(rt, profile), accept(rt, profile), accept(rt, profile, body="another")
    drain(rt)
    assert [state_of(rt, post) for post in (first, second, other)] == [State.QUEUED, State.QUEUED, State.PUBLISHED]
    drain(rt, clock)
    assert [state_of(rt, post) for post in (first, second)] == [State.PUBLISHED, State.PUBLISHED]
    asked = network.asked
    assert asked.index("create_post", asked.index("recover")) > len(asked) - 1 - asked[::-1].index("recover")


def test_a_clock_that_jumps_ahead_does_not_shorten_the_looks(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    post = accept(rt, profile)
    drain(rt)
    for _ in range(8):
        clock.jump(3600)
        drain(rt)
    assert network.asked.count("create_post") == 1
    assert state_of(rt, post) is State.QUEUED
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
