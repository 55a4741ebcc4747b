"""Workers that die, hang, are late or run twice: never a second post, and always a true outcome."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx2
import pytest

from socialpub.db.states import State
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import (
    Call,
    Environment,
    Place,
    assert_the_outcome_is_true,
    begin,
    let_worker_die,
    played,
    successor_of,
)
from tests.providers.networks import NETWORKS, STORIES, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled

HOUR = 3600.0
PATIENT_SECONDS = 120.0
"""The timeout for other threads."""

CALLS = [(network, title, call) for network, title in STORIES for call in story_of(network, title)[1].calls]
DEATHS = [(*call, moment) for call in CALLS for moment in ("before", "after")]
DEATHS_IN_EVERY_RUN = {
    (*call, moment)
    for index, call in enumerate(CALLS)
    for moment in ("before", "after")
    if call[0] == "x" or call[2] == story_of(*call[:2])[1].commit or moment == ("before", "after")[index % 2]
}
"""Both deaths around every call of X and every commit, and one death around every other call."""
COMMITS = [(network, title) for network, title in STORIES if title in ("text", "video", "image", "photos")]


def named(rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [" · ".join(row) for row in rows]


@pytest.mark.parametrize(
    ("network", "story", "call", "moment"), played(DEATHS, lambda *death: death in DEATHS_IN_EVERY_RUN)
)
def test_the_worker_dies_around_a_call_and_the_next_one_takes_over(env, network, story, call, moment):
    played, chosen = story_of(network, story)
    with chosen.under(), successor_of(env) as successor:
        post = begin(env, played, chosen, played.connect(env.rt, env.world))
        let_worker_die(env, Call.of(call), moment)
        with pytest.raises(ProcessKilled):
            drain(env.rt, env.clock)
        assert state_of(env.rt, post) is State.RUNNING
        drain(successor, env.clock, within=60)
        assert state_of(successor, post) is State.RUNNING, "its owner's lock is still held"
        env.rt.process.close()
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, played, post)
        # TikTok cannot find photos without a publish_id.
        told_by_nobody = chosen.place_of(call) is Place.COMMIT and chosen.read_back_by is None
        assert state_of(successor, post) is (State.UNCONFIRMED if told_by_nobody else State.PUBLISHED)


@contextmanager
def in_another_thread(rt: Runtime) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=drain, args=(rt,))
    thread.start()
    try:
        yield thread
    finally:
        thread.join(PATIENT_SECONDS)
        assert not thread.is_alive()


class Gate(threading.Event):
    """Blocks a call until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.reached.set()
        return super().wait(timeout or PATIENT_SECONDS)


def block_call(env: Environment, network: str, call: str, *, after_effect: bool) -> Gate:
    gate, at = Gate(), Call.of(call)
    upcoming = env.world.networks[network].next(at.endpoint).skipping(at.skip)
    upcoming.blocks_until(gate, after_effect=after_effect)
    return gate


@pytest.mark.parametrize("after_effect", [True, False], ids=["after", "before"])
@pytest.mark.parametrize(("network", "story"), COMMITS, ids=named(COMMITS))
def test_a_worker_that_hangs_in_its_commit_keeps_and_ends_the_delivery(env, network, story, after_effect):
    played, chosen = story_of(network, story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain_up_to_the_commit(env, chosen.commit)
    gate = block_call(env, network, chosen.commit, after_effect=after_effect)
    with successor_of(env) as other:
        with in_another_thread(env.rt):
            assert gate.reached.wait(PATIENT_SECONDS)
            drain(other, env.clock, within=HOUR)
            env.clock.forward(HOUR / 4)
            drain(other, env.clock, within=HOUR)
            assert state_of(other, post) is State.RUNNING
            gate.set()
        drain(other, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize("late_by", [0, 10, 200], ids=["at once", "between two looks", "when all is over"])
@pytest.mark.parametrize(("network", "story"), COMMITS, ids=named(COMMITS))
def test_a_response_arrives_after_another_process_claimed_the_row(env, network, story, late_by):
    played, chosen = story_of(network, story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain_up_to_the_commit(env, chosen.commit)
    gate = block_call(env, network, chosen.commit, after_effect=True)
    with successor_of(env) as successor:
        with in_another_thread(env.rt):
            assert gate.reached.wait(PATIENT_SECONDS)
            env.rt.process.close()
            drain(successor, env.clock, within=late_by)
            gate.set()
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, played, post)
        told_by_nobody = chosen.read_back_by is None
        assert state_of(successor, post) is (State.UNCONFIRMED if told_by_nobody else State.PUBLISHED)


@pytest.mark.parametrize(("network", "story"), [("x", "text"), ("pinterest", "image")])
def test_a_late_response_with_the_post_id_settles_a_post_that_no_list_shows_yet(env, network, story):
    played, chosen = story_of(network, story)
    env.world.x.list_lag_seconds = env.world.pinterest.list_lag_seconds = 10 * HOUR
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain_up_to_the_commit(env, chosen.commit)
    gate = block_call(env, network, chosen.commit, after_effect=True)
    with successor_of(env) as successor:
        with in_another_thread(env.rt):
            assert gate.reached.wait(PATIENT_SECONDS)
            env.rt.process.close()
            drain(successor, env.clock, within=10)
            assert state_of(successor, post) is State.QUEUED
            gate.set()
        assert state_of(successor, post) is State.PUBLISHED
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, played, post)


@pytest.mark.parametrize(("network", "story"), COMMITS, ids=named(COMMITS))
def test_the_post_appears_late_during_the_read_back(env, network, story):
    played, chosen = story_of(network, story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain_up_to_the_commit(env, chosen.commit)
    gate = block_call(env, network, chosen.commit, after_effect=False)
    with successor_of(env) as successor:
        with in_another_thread(env.rt):
            assert gate.reached.wait(PATIENT_SECONDS)
            env.rt.process.close()
            drain(successor, env.clock, within=25)
            gate.set()
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, played, post)


def drain_up_to_the_commit(env: Environment, commit: str) -> None:
    at = Call.of(commit)

    def broken(request: httpx2.Request) -> None:
        if env.transport.endpoint_of(request) == at.endpoint:
            raise httpx2.ConnectError("no route to host", request=request)

    env.transport.before_call = broken
    drain(env.rt, env.clock, within=120)
    env.transport.before_call = None
    env.clock.forward(600)


EFFECTS: dict[str, Callable[[World], list[str | None]]] = {
    "x": lambda world: [post.text for post in world.x.posts],
    "tiktok": lambda world: [task.publish_id for task in world.tiktok.tasks.values()],
    "pinterest": lambda world: [pin.description for pin in world.pinterest.pins],
    "bluesky": lambda world: [post.value["text"] for post in world.bluesky.posts],
}


@pytest.mark.parametrize("network", NETWORKS)
def test_two_processes_side_by_side_post_each_once(env, network):
    played = NETWORKS[network]
    title = {"x": "text", "tiktok": "draft", "pinterest": "image", "bluesky": "text"}[network]
    chosen = played.stories[title]
    people = [f"user{number}" for number in range(3)]
    profiles = {name: played.connect(env.rt, env.world, name) for name in people}
    posts = [
        begin(env, played, chosen, profile, username=name, body=f"{name} {number}")
        for name, profile in profiles.items()
        for number in range(4)
    ]

    def work_on_all(appliance: Runtime) -> None:
        for profile in profiles.values():
            engine.work(appliance, profile)

    with successor_of(env) as second:
        threads = [
            threading.Thread(target=work_on_all, args=(appliance,)) for appliance in (env.rt, second, env.rt, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        drain(env.rt, env.clock)
    assert {state_of(env.rt, post) for post in posts} == {State.PUBLISHED}
    effects = EFFECTS[network](env.world)
    assert len(effects) == len(set(effects)) == len(posts)
    assert max(env.world.networks[network].most_in_flight_of.values()) == 1, "one call of an account at a time"
