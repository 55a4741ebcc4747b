"""A commit that is not the end: the network takes it, and says later what became of the post."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Again, Done, Kind, Published, Readback, Refused, Wait
from socialpub.providers.responses import NoAnswer, Rejected
from tests.support.appliance import accept, attempts_of, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

SENT = Done({"publish_id": "v1"})


@pytest.fixture
def network():
    """A video whose last byte is the commit."""
    network = ScriptedNetwork(("init", Kind.PREPARE), ("send_last", Kind.COMMIT), ("await_outcome", Kind.POLL))
    network.results["send_last"] = [SENT]
    network.results["await_outcome"] = [Wait(5, "It is processing"), Published(None)]
    return network


def test_a_commit_that_is_found_to_have_arrived_is_watched_and_never_repeated(rt, network, profile, clock):
    network.results["send_last"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback(), SENT]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["init", "send_last", "recover", "recover", "await_outcome", "await_outcome"]
    assert state_of(rt, post) is State.PUBLISHED
    assert network.jobs[-1].memo["publish_id"] == "v1"


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (Refused("The text is spam.", verdict=True), State.FAILED),
        (Refused("A refused question."), State.UNCONFIRMED),
        (Rejected("A refused question."), State.UNCONFIRMED),
    ],
)
def test_only_a_verdict_on_the_post_itself_makes_it_failed(rt, network, profile, clock, line, state):
    network.results["await_outcome"] = [line]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is state
    assert message_of(rt, post).startswith("Outcome unknown:") is (state is State.UNCONFIRMED)


def test_a_post_that_the_network_reports_as_failed_may_start_again(rt, network, profile, clock):
    network.results["send_last"] = [SENT, SENT]
    network.results["await_outcome"] = [Again("init", {}, "failed", "It failed inside.", seconds=600), Published("7")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked.count("send_last") == 2
    assert state_of(rt, post) is State.PUBLISHED


def test_a_successful_step_may_record_a_message(rt, network, profile, clock):
    run = network.run

    def telling(step, job):
        job.trace.message = "publish_id v1" if step == "init" else None
        return run(step, job)

    network.run = telling
    post = accept(rt, profile)
    drain(rt, clock)
    assert attempts_of(rt, post)[0] == ("init", "done")
    assert select_value(rt.db, "SELECT message FROM attempt ORDER BY n LIMIT 1") == "publish_id v1"
