"""Every step of every kind of post, met by every fault: at most one effect, and an outcome that is true."""

import pytest

from socialpub.db.models import State
from tests.providers.grid import Stage, assert_the_outcome_is_true, begin, play
from tests.providers.networks import NETWORKS, STORIES, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

CELLS = [cell for network in NETWORKS.values() for cell in network.cells()]


@pytest.mark.parametrize(("network", "story", "call", "fault"), CELLS, ids=[" · ".join(cell) for cell in CELLS])
def test_one_fault_at_one_step(stage: Stage, network: str, story: str, call: str, fault: str) -> None:
    play(stage, NETWORKS[network], story, call, fault)


@pytest.mark.parametrize(("network", "story"), STORIES, ids=[" · ".join(story) for story in STORIES])
def test_without_a_fault_it_is_published(stage: Stage, network: str, story: str) -> None:
    told, tale = story_of(network, story)
    with tale.under():
        post = begin(stage, told, tale, told.connect(stage.rt, stage.world))
        drain(stage.rt, stage.clock)
    assert state_of(stage.rt, post) is State.PUBLISHED, message_of(stage.rt, post)
    assert_the_outcome_is_true(stage.rt, stage.world, told, post)
