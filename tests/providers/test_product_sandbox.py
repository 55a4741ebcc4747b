"""The sandbox that owners start takes every kind of post, and shows what happens when a response is lost.

The other tests of the networks run against the stand-ins, which check more.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.db.states import State
from socialpub.sandbox import World
from tests.providers.grid import Call, begin
from tests.providers.networks import STORIES, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock


@pytest.fixture
def world(clock: HandClock, tmp_path: Path) -> Iterator[World]:
    world = World(clock, journal=tmp_path / "sandbox.jsonl")
    world.instant_faults = True
    world.tiktok.all_urls_verified = True
    yield world
    world.close()


@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "lost"])
@pytest.mark.parametrize(("network", "story"), STORIES, ids=[" · ".join(story) for story in STORIES])
def test_a_post_is_published_once_and_stays_over_a_restart(env, network, story, is_lost):
    played, chosen = story_of(network, story)
    if is_lost:
        commit = Call.of(chosen.commit)
        env.world.networks[network].next(commit.endpoint).skipping(commit.skip).drops_connection_after_effect()
    with chosen.under():
        post = begin(env, played, chosen, played.connect(env.rt, env.world))
        drain(env.rt, env.clock)
    if not is_lost or chosen.read_back_by is not None:
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    again = World(env.clock, journal=env.folder / "sandbox.jsonl")
    for kept in (env.world, again):
        counts = kept.networks[network].totals()
        assert counts.get("task_count", counts.get("post_count", counts.get("pin_count"))) == 1
