"""Going back to an earlier step is counted by the engine, per reason, and ends as the network's adapter says."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Again, Kind, Refused
from tests.support.appliance import accept, attempts_of, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

GONE = "The upload is gone; it is sent anew."
STILL_GONE = Refused("The upload was gone every time. Create the post again.", "gone")


@pytest.fixture
def network():
    return ScriptedNetwork(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))


def again(reason=GONE, limit=2, otherwise=STILL_GONE):
    return Again("upload", {}, reason, limit, otherwise=otherwise)


def test_a_step_goes_back_up_to_the_limit_and_counts_its_returns(rt, network, profile, clock):
    network.results["create_post"] = [again(), again()]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["upload", "create_post"] * 3
    assert [job.times(GONE) for job in network.jobs] == [0, 0, 1, 1, 2, 2]
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


def test_each_reason_has_its_own_count(rt, network, profile, clock):
    network.results["create_post"] = [again(limit=1), again("It was too large.", limit=1), again(limit=1)]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked == ["upload", "create_post"] * 3
    assert state_of(rt, post) is State.FAILED
    assert [outcome for _, outcome in attempts_of(rt, post)].count("retrying") == 2
