"""The last chunk of a video as a table: arrival, response, lag of TikTok's count, and the second try.

In every row there is exactly one task, and the outcome is true."""

from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any

import httpx2
import pytest

from socialpub.db.states import State
from socialpub.sandbox.faults import FaultScript
from tests.providers.grid import (
    HOURS,
    Call,
    Environment,
    assert_the_outcome_is_true,
    begin,
    let_worker_die,
    played,
    successor_of,
)
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled

HOUR = 3600.0
Answer = Callable[[FaultScript], Any]

CUT_BEFORE: dict[str, Answer] = {
    "a time-out": lambda put: put.times_out_before_effect(),
    "a cut": lambda put: put.drops_connection_before_effect(),
    "400": lambda put: put.fails_with(400, ""),
    "403": lambda put: put.fails_with(403, ""),
    "404": lambda put: put.fails_with(404, ""),
    "410": lambda put: put.fails_with(410, ""),
    "416": lambda put: put.fails_with(416, ""),
    "503": lambda put: put.fails_with(503, ""),
    "a page with 403": lambda put: put.fails_with(403, html=True),
    "an unreadable 200": lambda put: put.answers_garbage(after_effect=False),
}
CUT_AFTER: dict[str, Answer] = {
    "a time-out": lambda put: put.times_out_after_effect(),
    "a cut": lambda put: put.drops_connection_after_effect(),
    "400": lambda put: put.fails_with(400, "", after_effect=True),
    "403": lambda put: put.fails_with(403, "", after_effect=True),
    "404": lambda put: put.fails_with(404, "", after_effect=True),
    "410": lambda put: put.fails_with(410, "", after_effect=True),
    "416": lambda put: put.fails_with(416, "", after_effect=True),
    "503": lambda put: put.fails_with(503, "", after_effect=True),
    "a page with 403": lambda put: put.fails_with(403, html=True, after_effect=True),
    "an unreadable 200": lambda put: put.answers_garbage(),
}
LAGS = {"exactly": 0.0, "five minutes late": 300.0, "half an hour late": HOUR / 2, "70 minutes late": 70 * 60.0}
SECOND = ("403", "404", "410", "416", "503", "a time-out", "a page with 403")

ARRIVED = [(first, lag, second) for first in CUT_AFTER for lag in LAGS for second in ("404", "a time-out")]
ARRIVED += [("a time-out", "70 minutes late", second) for second in SECOND]


@pytest.fixture
def give_up_after() -> timedelta:
    return HOURS


def in_every_run(first: str, lag: str, second: str) -> bool:
    turn = list(CUT_AFTER).index(first)
    once = list(LAGS)[turn % len(LAGS)] == lag and second == ("404", "a time-out")[turn % 2]
    return once or (first, lag) == ("a time-out", "70 minutes late")


def uncounted_in_every_run(first: str, lag: str) -> bool:
    return lag == ("exactly", "half an hour late")[list(CUT_BEFORE).index(first) % 2]


def lost_in_every_run(first: str, second: str) -> bool:
    return first == ("a time-out", "403", "503")[SECOND.index(second) % 3]


@pytest.mark.parametrize(("first", "lag", "second"), played(dict.fromkeys(ARRIVED), in_every_run))
def test_bytes_that_arrived_become_one_post_after_any_response(env, first, lag, second):
    env.world.tiktok.count_lag_seconds = LAGS[lag]
    CUT_AFTER[first](env.world.tiktok.next("upload_chunk"))
    CUT_BEFORE[second](env.world.tiktok.next("upload_chunk"))
    post = published_video(env)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize(
    ("first", "lag"), played(product(CUT_BEFORE, ("exactly", "half an hour late")), uncounted_in_every_run)
)
def test_bytes_that_did_not_arrive_are_sent_again_to_the_same_task(env, first, lag):
    env.world.tiktok.count_lag_seconds = LAGS[lag]
    CUT_BEFORE[first](env.world.tiktok.next("upload_chunk"))
    post = published_video(env)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert len(env.world.tiktok.statuses("upload_chunk")) == 2


@pytest.mark.parametrize(("first", "second"), played(product(("a time-out", "403", "503"), SECOND), lost_in_every_run))
def test_bytes_that_never_arrived_fail_when_that_is_certain(env, first, second):
    CUT_BEFORE[first](env.world.tiktok.next("upload_chunk"))
    CUT_BEFORE[second](env.world.tiktok.next("upload_chunk"))
    began = env.clock.monotonic()
    post = published_video(env)
    assert state_of(env.rt, post) is State.FAILED, message_of(env.rt, post)
    assert env.clock.monotonic() - began > 2 * HOUR
    (task,) = env.world.tiktok.tasks.values()
    assert f"TikTok has 0 of {task.size} bytes" in message_of(env.rt, post)
    assert len(env.world.tiktok.statuses("upload_chunk")) == 2, "there is no third try"


@pytest.mark.parametrize("first", ["a time-out", "503", "416"])
def test_bytes_that_only_the_second_try_delivered_are_counted_late(env, first):
    env.world.tiktok.count_lag_seconds = LAGS["70 minutes late"]
    CUT_BEFORE[first](env.world.tiktok.next("upload_chunk"))
    CUT_AFTER["403"](env.world.tiktok.next("upload_chunk"))
    post = published_video(env)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize("lag", ["exactly", "half an hour late"])
@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
def test_a_worker_that_died_in_the_middle_left_one_task_behind(env, arrived, lag):
    env.world.tiktok.count_lag_seconds = LAGS[lag]
    post = film_whose_worker_died(env, arrived, Call("upload_chunk"))
    CUT_BEFORE["404"](env.world.tiktok.next("upload_chunk"))
    assert outcome_of_successor(env, post) is (State.PUBLISHED if arrived else State.FAILED)


@pytest.mark.parametrize("tried", [0, 1], ids=["in the first try", "in the second"])
@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
def test_a_worker_that_dies_reports_nothing_false(env, arrived, tried):
    env.world.tiktok.count_lag_seconds = LAGS["half an hour late"]
    if tried:
        CUT_BEFORE["503"](env.world.tiktok.next("upload_chunk"))
    post = film_whose_worker_died(env, arrived, Call("upload_chunk", tried))
    assert outcome_of_successor(env, post) in (State.PUBLISHED, State.UNCONFIRMED)


def film_whose_worker_died(env: Environment, arrived: bool, call: Call) -> str:
    played, chosen = story_of("tiktok", "video")
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    let_worker_die(env, call, "after" if arrived else "before")
    with pytest.raises(ProcessKilled):
        drain(env.rt, env.clock)
    env.rt.process.close()
    return post


def outcome_of_successor(env: Environment, post: str) -> State:
    with successor_of(env) as successor:
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, story_of("tiktok", "video")[0], post)
        assert len(env.world.tiktok.tasks) == 1
        return state_of(successor, post)


@pytest.mark.parametrize("first", ["503", "an unreadable 200", "a time-out", "403"])
def test_a_disconnect_during_the_last_chunk_leaves_the_outcome_unknown(env, first):
    played, chosen = story_of("tiktok", "video")
    profile = played.connect(env.rt, env.world)
    post = begin(env, played, chosen, profile)
    CUT_AFTER[first](env.world.tiktok.next("upload_chunk"))

    def disconnects(request: httpx2.Request) -> None:
        if env.transport.endpoint_of(request) == "upload_chunk":
            env.rt.db.write(
                lambda tx: tx.execute_sql(
                    "UPDATE profile SET status = 'disconnected', disconnected_at = ? WHERE id = ?", (tx.stamp, profile)
                )
            )

    env.transport.before_call = disconnects
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.UNCONFIRMED


def test_an_address_that_expired_before_any_try_leads_to_a_new_task(env):
    played, chosen = story_of("tiktok", "video")
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    ends_at = env.clock.now() + timedelta(hours=1)
    met = 0

    def unreachable_for_an_hour(request: httpx2.Request) -> None:
        nonlocal met
        if env.transport.endpoint_of(request) == "upload_chunk" and env.clock.now() < ends_at:
            met += 1
            raise httpx2.ConnectError("no route to host", request=request)

    env.transport.before_call = unreachable_for_an_hour
    drain(env.rt, env.clock)
    assert met > 2
    assert len(env.world.tiktok.tasks) == 2
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


def published_video(env: Environment) -> str:
    played, chosen = story_of("tiktok", "video")
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert len(env.world.tiktok.tasks) == 1
    return post
