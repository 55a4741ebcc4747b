"""How often a key may ask, and how often an address may be wrong (contract 1.10)."""

from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.settings.sections import RateLimitSection
from socialpub.runtime import Runtime
from socialpub.web.app import create_app
from tests.integration.api.client import Client
from tests.support.hand_clock import HandClock


@pytest.fixture
def appliance_options() -> dict[str, Any]:
    return {"rate_limit": RateLimitSection(requests_per_minute=3, failed_keys_per_minute=2)}


def test_the_last_allowed_request_is_answered_and_the_next_is_not(client: Client, clock: HandClock) -> None:
    for left in (2, 1, 0):
        reply = client.send("GET", "/posts")
        assert reply.status == 200
        assert reply.headers["ratelimit-limit"] == "3"
        assert reply.headers["ratelimit-remaining"] == str(left)
        assert reply.headers["ratelimit-reset"] == "60"
    clock.forward(20.5)
    reply = client.send("GET", "/posts")
    assert (reply.status, reply.json()["code"]) == (429, "rateLimited")
    assert reply.headers["retry-after"] == "40"
    assert reply.headers["ratelimit-remaining"] == "0"
    clock.forward(39.5)
    assert client.send("GET", "/posts").status == 200


def test_failing_requests_count_as_well(client: Client) -> None:
    for _ in range(3):
        assert client.send("GET", "/posts/unknown").status == 404
    assert client.send("GET", "/posts").status == 429


def test_each_key_has_its_own_count(client: Client, rt: Runtime) -> None:
    other = rt.write(api_keys.create, "other")
    for _ in range(4):
        client.send("GET", "/posts")
    assert client.send("GET", "/posts").status == 429
    assert client.send("GET", "/posts", key=other).status == 200


def test_a_wall_clock_that_is_set_lets_nobody_in(client: Client, clock: HandClock) -> None:
    for _ in range(3):
        client.send("GET", "/posts")
    clock.jump(3600)
    assert client.send("GET", "/posts").status == 429


def test_wrong_keys_are_limited_by_address_and_a_valid_one_still_works(client: Client, clock: HandClock) -> None:
    for _ in range(2):
        assert client.send("GET", "/posts", key="spk_nobody_secret").status == 401
    reply = client.send("GET", "/posts", key="spk_nobody_secret")
    assert (reply.status, reply.json()["code"]) == (429, "rateLimited")
    assert reply.headers["retry-after"] == "60"
    assert reply.headers["ratelimit-limit"] == "2"
    assert client.send("GET", "/posts").status == 200
    clock.forward(60)
    assert client.send("GET", "/posts", key="spk_nobody_secret").status == 401


def test_a_missing_key_is_no_failed_one(client: Client) -> None:
    for _ in range(5):
        assert client.send("GET", "/posts", key=None).status == 401


def test_behind_a_proxy_of_this_machine_the_address_is_the_one_it_heard_from(client: Client) -> None:
    def wrong(forwarded: str) -> int:
        return client.send("GET", "/posts", key="wrong", x_forwarded_for=forwarded).status

    # The first entry is the caller's to invent; only the last was written by the proxy.
    assert [wrong(f"10.0.0.{n}, 203.0.113.9") for n in range(3)] == [401, 401, 429]
    assert wrong("203.0.113.10") == 401


def test_addresses_that_are_over_are_forgotten(rt: Runtime, clock: HandClock) -> None:
    rate_limits = create_app(rt).state.rate_limits
    for number in range(10_000):
        rate_limits.count_failure(f"address {number}")
    clock.forward(61)
    rate_limits.count_failure("one more")
    assert rate_limits._windows.reset() == 1, "how many there were"
