"""Other clocks, lagging lists and late second calls: never two posts, and always a true outcome."""

from collections.abc import Callable

import httpx2
import pytest

from socialpub.db.states import State
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from tests.providers.grid import Call, Environment, assert_the_outcome_is_true, begin, played, successor_of
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_value

HOUR = 3600.0
DUPLICATE = {
    "title": "Forbidden",
    "status": 403,
    "detail": "You are not allowed to create a Tweet with duplicate content.",
}
LISTS = [("x", "text"), ("x", "images"), ("pinterest", "image"), ("pinterest", "carousel"), ("pinterest", "video")]
"""Stories of networks with a list of posts."""
READABLE = [*LISTS, ("tiktok", "video")]
EFFECTS = pytest.mark.parametrize("effect", [True, False], ids=["it was made", "it was not"])
EVERYTHING = ("x", "text")
"""The story with every value in every run. The others have every value at least once."""


def lost_commit(env: Environment, network: str, story: str, *, effect: bool) -> str:
    played, chosen = story_of(network, story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    verb = "times_out_after_effect" if effect else "times_out_before_effect"
    upcoming = env.world.networks[network].next(chosen.commit)
    getattr(upcoming, verb)()
    return post


SKEWS = (-8 * HOUR, -600, -180, 180, 600, 8 * HOUR)
SKEWED = [(*story, skew, effect) for story in READABLE for skew in SKEWS for effect in (True, False)]


def skewed_in_every_run(network: str, story: str, skew: float, effect: bool) -> bool:
    index = READABLE.index((network, story))
    widest = abs(skew) == 8 * HOUR or index % 2 == SKEWS.index(skew) % 2
    return (network, story) == EVERYTHING or (widest and effect == (skew > 0))


@pytest.mark.parametrize(("network", "story", "skew", "effect"), played(SKEWED, skewed_in_every_run))
def test_the_networks_clock_differs(env, network, story, skew, effect):
    env.world.networks[network].clock_skew_seconds = skew
    post = lost_commit(env, network, story, effect=effect)
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, story_of(network, story)[0], post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


UNTOLD = [(*story, skew, effect) for story in LISTS for skew in (-8 * HOUR, 8 * HOUR) for effect in (True, False)]


@pytest.mark.parametrize(("network", "story", "skew", "effect"), played(UNTOLD, skewed_in_every_run))
def test_a_network_without_a_date_gets_a_margin_of_a_day(env, network, story, skew, effect):
    env.world.networks[network].clock_skew_seconds = skew
    env.world.networks[network].sends_date = False
    post = lost_commit(env, network, story, effect=effect)
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, story_of(network, story)[0], post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -7 * 24 * HOUR, 7 * 24 * HOUR])
@pytest.mark.parametrize(("network", "story"), READABLE)
def test_our_clock_is_set_between_the_call_and_the_read_back(env, network, story, jump):
    played, _ = story_of(network, story)
    env.world.networks[network].clock_skew_seconds = jump  # the clock was always right
    post = lost_commit(env, network, story, effect=True)
    drain(env.rt)
    env.clock.jump(jump)
    env.world.networks[network].clock_skew_seconds = 0
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize(("network", "story"), [("x", "text"), ("pinterest", "image")])
def test_our_clock_is_set_during_the_call_and_the_worker_dies_after_it(env, network, story):
    played, chosen = story_of(network, story)
    env.world.networks[network].clock_skew_seconds = -7 * 24 * HOUR  # the clock was always right
    post = lost_commit(env, network, story, effect=True)
    env.world.networks[network].sends_date = False

    def set_back(request: httpx2.Request) -> None:
        if env.transport.endpoint_of(request) == chosen.commit:
            env.transport.before_call = None
            env.clock.jump(-7 * 24 * HOUR)
            env.world.networks[network].clock_skew_seconds = 0

    env.transport.before_call = set_back
    drain(env.rt)
    started_at = select_value(env.rt.db, "SELECT started_at FROM delivery")
    assert started_at <= env.rt.stamp()
    env.world.networks[network].sends_date = True
    env.rt.process.close()
    with successor_of(env) as successor:
        drain(successor, env.clock)
        assert_the_outcome_is_true(successor, env.world, played, post)
        assert state_of(successor, post) is State.PUBLISHED, message_of(successor, post)


LAGS = (112, 185, 400, 590)


@pytest.mark.parametrize(
    ("network", "story", "lag"),
    played(
        [(*story, lag) for story in LISTS for lag in LAGS],
        lambda *row: row[:2] == EVERYTHING or LISTS.index(row[:2]) % 4 == LAGS.index(row[2]),
    ),
)
def test_the_list_lags_by_minutes(env, network, story, lag):
    played, chosen = story_of(network, story)
    env.world.x.list_lag_seconds = env.world.pinterest.list_lag_seconds = lag
    post = lost_commit(env, network, story, effect=True)
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert env.world.networks[network].statuses(chosen.commit) == [0], "it was not sent again"


def paused(env: Environment, network: str, commit: str) -> None:
    env.rt.write(resume.pause)
    env.clock.forward(12 * HOUR)
    env.rt.write(resume.end_pause)


def rate_limited(env: Environment, network: str, commit: str) -> None:
    env.world.networks[network].next(commit).rate_limited(HOUR, "retry-after")


def unreachable(env: Environment, network: str, commit: str) -> None:
    left = 5

    def broken(request: httpx2.Request) -> None:
        nonlocal left
        if env.transport.endpoint_of(request) == commit and left:
            left -= 1
            raise httpx2.ConnectError("no route to host", request=request)

    env.transport.before_call = broken


def refused(env: Environment, network: str, commit: str) -> None:
    env.world.networks[network].next(commit).fails_with(403)


def refused_as_a_duplicate(env: Environment, network: str, commit: str) -> None:
    env.world.networks[network].next(commit).fails_with(403, DUPLICATE if network == "x" else None)


def lost_again(env: Environment, network: str, commit: str) -> None:
    env.world.networks[network].next(commit).times_out_before_effect()


def answered_by_a_page(env: Environment, network: str, commit: str) -> None:
    env.world.networks[network].next(commit).fails_with(429, html=True)


SECOND_CALLS: dict[str, Callable[[Environment, str, str], None]] = {
    met.__name__: met
    for met in (paused, rate_limited, unreachable, refused, refused_as_a_duplicate, lost_again, answered_by_a_page)
}


LATE = [(*story, met, lag) for story in LISTS for met in SECOND_CALLS for lag in (620, 1000)]


def late_in_every_run(network: str, story: str, met: str, lag: float) -> bool:
    index = list(SECOND_CALLS).index(met)
    turn = (index + LISTS.index((network, story))) % 3 == 0 and lag == (620, 1000)[index % 2]
    return (network, story) == EVERYTHING or turn


@pytest.mark.parametrize(("network", "story", "met", "lag"), played(LATE, late_in_every_run))
def test_the_post_shows_only_after_the_second_call_was_allowed(env, network, story, met, lag):
    played, chosen = story_of(network, story)
    env.world.x.list_lag_seconds = env.world.pinterest.list_lag_seconds = lag
    post = lost_commit(env, network, story, effect=True)
    until_the_second_call(env, chosen.commit)
    SECOND_CALLS[met](env, network, chosen.commit)
    if met in ("paused", "rate_limited", "unreachable") and lag > 700:
        env.world.x.list_lag_seconds = env.world.pinterest.list_lag_seconds = 640
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) in (State.PUBLISHED, State.UNCONFIRMED), message_of(env.rt, post)


def until_the_second_call(env: Environment, commit: str) -> None:
    began = env.clock.monotonic()
    drain(env.rt, env.clock, within=598)
    env.clock.forward(599 - (env.clock.monotonic() - began))
    drain(env.rt)
    assert env.transport.called.count(commit) == 1


@EFFECTS
@pytest.mark.parametrize(("network", "story"), READABLE)
def test_a_stop_between_the_two_calls_reports_the_true_outcome(env, network, story, effect):
    played, chosen = story_of(network, story)
    env.world.x.list_lag_seconds = env.world.pinterest.list_lag_seconds = 620
    env.world.tiktok.count_lag_seconds = 620
    post = lost_commit(env, network, story, effect=effect)
    until_the_second_call(env, chosen.commit)
    env.rt.write(lambda rt, tx: posts.stop(rt, tx, post))
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert env.transport.called.count(Call.of(chosen.commit).endpoint) <= 2
