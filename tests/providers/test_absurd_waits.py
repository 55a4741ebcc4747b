"""Implausible waits affect neither this post nor later posts."""

from typing import Any

import pytest

from socialpub.core.clock import parse
from socialpub.db.states import State
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import NETWORKS, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_all

DAY = 86_400.0
LIMITED: dict[str, tuple[str, str, Any]] = {
    "x": ("text", "create_post", {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank"}),
    "tiktok": ("video", "video_init", {"error": {"code": "rate_limit_exceeded", "message": "", "log_id": "2026"}}),
    "pinterest": ("image", "create_pin", {"code": 8, "message": "You have exceeded your rate limit."}),
    "bluesky": ("text", "put_record", {"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}),
}
"""The story, the call that is refused with 429, and the body of the refusal."""


def refused(env: Environment, network: str, headers: dict[str, str]) -> tuple[str, str]:
    title, call, body = LIMITED[network]
    played, chosen = story_of(network, title)
    profile = played.connect(env.rt, env.world)
    env.world.networks[network].next(call).fails_with(429, body, headers=headers)
    post = begin(env, played, chosen, profile)
    drain(env.rt)
    until = [row[0] for row in select_all(env.rt.db, "SELECT until FROM stored_wait")]
    until += [row[0] for row in select_all(env.rt.db, "SELECT run_at FROM delivery WHERE state = 'queued'")]
    assert all((parse(at) - env.clock.now()).total_seconds() <= DAY for at in until), until
    return post, profile


@pytest.mark.parametrize(
    ("network", "name", "value"),
    [
        ("x", "x-rate-limit-reset", "1791800000000"),
        ("x", "retry-after", "-5"),
        ("tiktok", "retry-after", "999999999"),
        ("tiktok", "retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("pinterest", "x-ratelimit-reset", "999999999"),
        ("pinterest", "retry-after", "0"),
        ("bluesky", "ratelimit-reset", "1791800000000"),
        ("bluesky", "retry-after", "-5"),
    ],
)
def test_an_implausible_wait_is_ignored(env, network, name, value):
    began = env.clock.now()
    post, _ = refused(env, network, {name: value})
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert (env.clock.now() - began).total_seconds() < 3600
    assert_the_outcome_is_true(env.rt, env.world, NETWORKS[network], post)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_wait_of_ten_days_ends_the_post_and_the_next_post_asks_again_after_a_day(env, network):
    first, profile = refused(env, network, {"retry-after": "864000"})
    assert state_of(env.rt, first) is State.FAILED
    assert "after the deadline" in message_of(env.rt, first)
    title, call, _ = LIMITED[network]
    second = begin(env, *story_of(network, title), profile, body="A day later")
    drain(env.rt, env.clock)
    assert state_of(env.rt, second) is State.PUBLISHED, message_of(env.rt, second)
    assert env.transport.called.count(call) == 2
