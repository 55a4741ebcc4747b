"""Going back to an earlier step after a call whose outcome was not known at first."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Again, CannotTell, Done, Kind, Refused
from socialpub.providers.responses import NoAnswer
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def network():
    """As TikTok: the commit is the last byte, and a poll after it says what became of the post."""
    network = ScriptedNetwork(("init", Kind.PREPARE), ("send_last", Kind.COMMIT), ("await", Kind.POLL))
    network.results["send_last"] = [NoAnswer("cut"), Done({"publish_id": "2"})]
    network.results["recover"] = [Done({"publish_id": "1"})]
    network.results["await"] = [Again("init", {}, "internal: TikTok failed, and says that it made nothing")]
    return network


def test_a_task_that_the_network_reported_as_failed_is_not_unknown_when_the_next_is_refused(
    rt, network, profile, clock
):
    network.results["init"] = [Done({"publish_id": "1"}), Refused("The daily cap of posts is reached.")]
    network.results["recover"] += [CannotTell("no publish_id")] * 100
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, "The daily cap of posts is reached.")


def test_after_a_refusal_no_further_step_is_run(rt, network, profile, clock):
    """A list finds what looks like it: the plan must not go on from the step that was refused."""
    network.results["init"] = [Done({"publish_id": "1"}), Refused("The daily cap of posts is reached.")]
    network.results["recover"] += [Done({"publish_id": "1"})] * 100
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked.count("send_last") == 1, state_of(rt, post)


def test_a_stop_after_going_back_is_a_stop(rt, network, profile, clock):
    network.results["await"] = [Again("init", {}, "internal: TikTok failed", seconds=3600)]
    network.results["init"] = [Done({"publish_id": "1"})]
    network.results["recover"] += [CannotTell("no publish_id")] * 100
    post = accept(rt, profile)
    drain(rt, clock, within=600)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, "Stopped by the owner.")
