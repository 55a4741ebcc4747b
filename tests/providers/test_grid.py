"""Every step of every kind of post, met by every fault: at most one effect, and an outcome that is true."""

import pytest

from socialpub.db.models import State
from tests.providers.grid import (
    FAULTS,
    ONE_FAULT_PER_MEANING,
    Environment,
    Means,
    assert_the_outcome_is_true,
    begin,
    play,
)
from tests.providers.networks import NETWORKS, STORIES, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

CELLS = [cell for network in NETWORKS.values() for cell in network.cells()]


@pytest.mark.parametrize(("network", "story", "call", "fault"), CELLS, ids=[" · ".join(cell) for cell in CELLS])
def test_one_fault_at_one_step(env: Environment, network: str, story: str, call: str, fault: str) -> None:
    play(env, NETWORKS[network], story, call, fault)


def test_one_story_of_each_network_meets_every_fault_and_the_others_every_meaning() -> None:
    assert {FAULTS[name].means for name in ONE_FAULT_PER_MEANING} == set(Means)
    for network in NETWORKS.values():
        assert [story.every_fault for story in network.stories.values()].count(True) == 1


@pytest.mark.parametrize(("network", "story"), STORIES, ids=[" · ".join(story) for story in STORIES])
def test_without_a_fault_it_is_published(env: Environment, network: str, story: str) -> None:
    played, chosen = story_of(network, story)
    with chosen.under():
        post = begin(env, played, chosen, played.connect(env.rt, env.world))
        drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
