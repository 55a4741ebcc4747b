"""A step that goes back: the engine counts by reason, and the adapter decides the end, also after the commit."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Again, CannotTell, Done, Kind, Refused
from socialpub.providers.responses import NoAnswer
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, attempts_of, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

GONE = "The upload is gone. It is sent again."
STILL_GONE = Refused("The upload was gone every time. Create the post again.", "gone")


@pytest.fixture
def network(request):
    """A network without a step after the commit, or as TikTok: a poll reports the outcome of the last byte."""
    if not getattr(request, "param", None):
        return ScriptedNetwork(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
    network = ScriptedNetwork(("init", Kind.PREPARE), ("send_last", Kind.COMMIT), ("await", Kind.POLL))
    network.results["send_last"] = [NoAnswer("cut"), Done({"publish_id": "2"})]
    network.results["recover"] = [Done({"publish_id": "1"})]
    network.results["await"] = [Again("init", {}, "internal", "internal: TikTok failed, and says that it made nothing")]
    return network


after_the_commit = pytest.mark.parametrize("network", ["tiktok"], indirect=True)


def again(cause="gone", limit=2, otherwise=STILL_GONE):
    return Again("upload", {}, cause, GONE, limit, otherwise=otherwise)


def test_a_step_goes_back_up_to_the_limit_and_counts_its_returns(rt, network, profile, clock):
    network.results["create_post"] = [again(), again()]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["upload", "create_post"] * 3
    assert [job.times("gone") for job in network.jobs] == [0, 0, 1, 1, 2, 2]
    assert state_of(rt, post) is State.PUBLISHED


@pytest.mark.parametrize(("otherwise", "message"), [(STILL_GONE, STILL_GONE.message), (None, GONE)])
def test_at_the_limit_the_outcome_of_the_adapter_counts(rt, network, profile, clock, otherwise, message):
    network.results["create_post"] = [again(otherwise=otherwise) for _ in range(3)]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["upload", "create_post"] * 3
    assert state_of(rt, post) is State.FAILED
    assert message in message_of(rt, post)
    assert network.effects == []


def test_each_cause_has_its_own_count(rt, network, profile, clock):
    network.results["create_post"] = [again(limit=1), again("too-large", limit=1), again(limit=1)]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["upload", "create_post"] * 3
    assert state_of(rt, post) is State.FAILED
    assert [outcome for _, outcome in attempts_of(rt, post)].count("retrying") == 2


@after_the_commit
def test_after_the_commit_a_task_that_failed_is_not_unknown_when_the_next_task_is_refused(rt, network, profile, clock):
    network.results["init"] = [Done({"publish_id": "1"}), Refused("The daily cap of posts is reached.")]
    network.results["recover"] += [CannotTell("no publish_id")] * 100
    post = accept(rt, profile)
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, "The daily cap of posts is reached.")


@after_the_commit
def test_after_the_commit_a_refusal_ends_the_plan(rt, network, profile, clock):
    """A list finds what looks like it: the plan must not go on from the step that was refused."""
    network.results["init"] = [Done({"publish_id": "1"}), Refused("The daily cap of posts is reached.")]
    network.results["recover"] += [Done({"publish_id": "1"})] * 100
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked.count("send_last") == 1, state_of(rt, post)


@after_the_commit
def test_after_the_commit_a_stop_ends_a_step_that_goes_back(rt, network, profile, clock):
    network.results["await"] = [Again("init", {}, "internal", "internal: TikTok failed", seconds=3600)]
    network.results["init"] = [Done({"publish_id": "1"})]
    network.results["recover"] += [CannotTell("no publish_id")] * 100
    post = accept(rt, profile)
    drain(rt, clock, within=600)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, "Stopped by the owner.")
