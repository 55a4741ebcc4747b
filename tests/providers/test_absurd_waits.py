"""Waits that no network can have meant poison nothing: neither this post nor those of weeks later."""

from typing import Any

import pytest

from socialpub.core.clock import parse
from socialpub.db.states import State
from tests.providers.grid import Call, Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

DAY = 86_400.0
X_BODY = {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429}
TIKTOK_BODY = {"error": {"code": "rate_limit_exceeded", "message": "", "log_id": "202610120900000000000000000000000"}}
PINTEREST_BODY = {"code": 8, "message": "You have exceeded your rate limit."}

ABSURD: list[tuple[str, str, str, Any, dict[str, str]]] = [
    ("x", "text", "create_post", X_BODY, {"x-rate-limit-reset": "1791800000000"}),
    ("x", "text", "create_post", X_BODY, {"x-rate-limit-reset": "9999999999"}),
    ("x", "text", "create_post", X_BODY, {"x-rate-limit-reset": "1000"}),
    ("x", "text", "create_post", X_BODY, {"retry-after": "999999999"}),
    ("x", "text", "create_post", X_BODY, {"retry-after": "99999999999999999999"}),
    ("x", "text", "create_post", X_BODY, {"retry-after": "-5"}),
    ("tiktok", "film", "video_init", TIKTOK_BODY, {"retry-after": "999999999"}),
    ("tiktok", "film", "video_init", TIKTOK_BODY, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    ("pinterest", "picture", "create_pin", PINTEREST_BODY, {"x-ratelimit-reset": "999999999"}),
    ("pinterest", "picture", "create_pin", PINTEREST_BODY, {"retry-after": "0"}),
]
IDS = [f"{row[0]}-{next(iter(row[4]))}-{next(iter(row[4].values()))}" for row in ABSURD]


@pytest.mark.parametrize(("network", "story", "endpoint", "body", "headers"), ABSURD, ids=IDS)
def test_a_time_that_makes_no_sense_counts_as_none(
    env: Environment, network: str, story: str, endpoint: str, body: Any, headers: dict[str, str]
) -> None:
    played, chosen = story_of(network, story)
    profile = played.connect(env.rt, env.world)
    env.world.networks[network].next(endpoint).fails_with(429, body, headers=headers)
    began = env.clock.now()
    post = begin(env, played, chosen, profile)
    drain(env.rt)
    assert_nothing_is_stored_for_longer_than_a_day(env)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert (env.clock.now() - began).total_seconds() < 3600
    assert_the_outcome_is_true(env.rt, env.world, played, post)


MONTH_LONG = [
    ("x", "text", "create_post", X_BODY, {"retry-after": "864000"}),
    ("tiktok", "film", "video_init", TIKTOK_BODY, {"retry-after": "864000"}),
    ("pinterest", "picture", "create_pin", PINTEREST_BODY, {"retry-after": "864000"}),
]


@pytest.mark.parametrize(
    ("network", "story", "endpoint", "body", "headers"), MONTH_LONG, ids=[row[0] for row in MONTH_LONG]
)
def test_ten_days_end_the_post_that_met_them_and_the_next_one_asks_again_after_a_day(
    env: Environment, network: str, story: str, endpoint: str, body: Any, headers: dict[str, str]
) -> None:
    played, chosen = story_of(network, story)
    profile = played.connect(env.rt, env.world)
    env.world.networks[network].next(endpoint).fails_with(429, body, headers=headers)
    first = begin(env, played, chosen, profile)
    drain(env.rt)
    assert state_of(env.rt, first) is State.FAILED
    assert "later than its deadline" in message_of(env.rt, first)
    assert_nothing_is_stored_for_longer_than_a_day(env)
    second = begin(env, played, chosen, profile, body="A day later")
    drain(env.rt, env.clock)
    assert state_of(env.rt, second) is State.PUBLISHED, message_of(env.rt, second)
    assert env.transport.called.count(Call.of(endpoint).endpoint) == 2


def assert_nothing_is_stored_for_longer_than_a_day(env: Environment) -> None:
    until = [row[0] for row in env.rt.reader.all("SELECT until FROM not_before")]
    until += [row[0] for row in env.rt.reader.all("SELECT run_at FROM delivery WHERE state = 'queued'")]
    assert all((parse(at) - env.clock.now()).total_seconds() <= DAY for at in until), until
