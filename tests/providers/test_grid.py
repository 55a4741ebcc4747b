"""Every step of every kind of post with every fault: at most one effect, and a true outcome."""

from datetime import timedelta

import pytest

from socialpub.db.states import State
from tests.providers.grid import (
    COMES_TO,
    EVERY_PAIR,
    FAULTS,
    ONE_FAULT_PER_MEANING,
    Environment,
    Means,
    assert_the_outcome_is_true,
    begin,
    hours_or_a_day,
    play,
    played,
)
from tests.providers.networks import NETWORKS, STORIES, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

CELLS = [cell for network in NETWORKS.values() for cell in network.cells()]
PAIRWISE = {cell for network in NETWORKS.values() for cell in network.pairwise()}


@pytest.fixture
def give_up_after(request: pytest.FixtureRequest) -> timedelta:
    return hours_or_a_day(request)


@pytest.mark.parametrize(("network", "story", "call", "fault"), played(CELLS, lambda *cell: cell in PAIRWISE))
def test_one_fault_at_one_step(env: Environment, network: str, story: str, call: str, fault: str) -> None:
    play(env, NETWORKS[network], story, call, fault)


def test_one_story_of_each_network_has_every_fault_and_the_others_every_meaning() -> None:
    assert {FAULTS[name].means for name in ONE_FAULT_PER_MEANING} == set(Means)
    for network in NETWORKS.values():
        assert [story.every_fault for story in network.stories.values()].count(True) == 1


def test_every_run_covers_each_pair_of_step_and_fault_once_and_every_class_in_every_story() -> None:
    assert set(CELLS) >= PAIRWISE
    network, title = EVERY_PAIR
    steps = story_of(network, title)[1].calls
    assert {cell for cell in PAIRWISE if cell[:2] == EVERY_PAIR} >= {
        (network, title, call, fault) for call in steps for fault in FAULTS
    }
    for network, title in STORIES:
        story = story_of(network, title)[1]
        cells = [cell for cell in PAIRWISE if cell[:2] == (network, title)]
        assert {call for _, _, call, _ in cells} == set(story.calls), "every step meets something"
        assert {fault for _, _, call, fault in cells if call == story.commit} >= set(ONE_FAULT_PER_MEANING)
    assert {fault for _, _, _, fault in PAIRWISE} == {fault for _, _, _, fault in CELLS}
    met = {(NETWORKS[cell[0]].fault(cell[3]).means, story_of(*cell[:2])[1].place_of(cell[2])) for cell in PAIRWISE}
    assert met == set(COMES_TO)


@pytest.mark.parametrize(("network", "story"), STORIES, ids=[" · ".join(story) for story in STORIES])
def test_without_a_fault_it_is_published(env: Environment, network: str, story: str) -> None:
    played, chosen = story_of(network, story)
    with chosen.under():
        post = begin(env, played, chosen, played.connect(env.rt, env.world))
        drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
