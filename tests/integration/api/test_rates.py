"""Rate limits of keys and of addresses with wrong keys (contract 1.10)."""

import time
from ipaddress import IPv4Address
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.core.settings.schema import RateLimitSection
from socialpub.web.http.app import create_app
from socialpub.web.http.rate_limit import MAX_ADDRESSES


@pytest.fixture
def appliance_options() -> dict[str, Any]:
    return {"rate_limit": RateLimitSection(requests_per_minute=3, failed_keys_per_minute=2)}


def test_the_request_after_the_limit_is_a_429(client, clock):
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


def test_failing_requests_count(client):
    for _ in range(3):
        assert client.send("GET", "/posts/unknown").status == 404
    assert client.send("GET", "/posts").status == 429


def test_setting_the_system_clock_does_not_reset_the_limit(client, clock):
    for _ in range(3):
        client.send("GET", "/posts")
    clock.jump(3600)
    assert client.send("GET", "/posts").status == 429


def test_wrong_keys_are_limited_by_address_and_a_valid_one_still_works(client, clock):
    for _ in range(2):
        assert client.send("GET", "/posts", key="spk_nobody_secret").status == 401
    reply = client.send("GET", "/posts", key="spk_nobody_secret")
    assert (reply.status, reply.json()["code"]) == (429, "rateLimited")
    assert reply.headers["retry-after"] == "60"
    assert reply.headers["ratelimit-limit"] == "2"
    assert client.send("GET", "/posts").status == 200
    clock.forward(60)
    assert client.send("GET", "/posts", key="spk_nobody_secret").status == 401


def test_a_missing_key_does_not_count_as_wrong(client):
    for _ in range(5):
        assert client.send("GET", "/posts", key=None).status == 401


def test_an_ipv6_household_counts_as_one_address(client):
    def wrong(forwarded: str) -> int:
        return client.send("GET", "/posts", key="wrong", x_forwarded_for=forwarded).status

    assert [wrong(f"2001:db8:1:2::{n:x}") for n in range(3)] == [401, 401, 429]
    assert wrong("2001:db8:1:3::1") == 401
    assert [wrong(same) for same in ("203.0.113.9", "::ffff:203.0.113.9", "203.0.113.9:50000")] == [401, 401, 429]


def test_an_invalid_forwarded_address_counts_for_the_proxy(client):
    told = ("unknown", "", "x" * 1000)
    assert [client.send("GET", "/posts", key="wrong", x_forwarded_for=one).status for one in told] == [401, 401, 429]


def test_wrong_metrics_tokens_count_as_wrong_keys(client, rt, monkeypatch):
    monkeypatch.setitem(rt.settings.metrics.__dict__, "token", SecretStr("right"))
    for _ in range(4):
        assert client.send("GET", "/metrics", key=None).status == 401
    for _ in range(2):
        assert client.send("GET", "/metrics", key="wrong").status == 401
    assert client.send("GET", "/metrics", key="wrong").status == 429
    assert client.send("GET", "/posts", key="wrong").status == 429
    assert client.send("GET", "/metrics", key="right").status == 200


def test_more_addresses_than_the_limit_need_no_more_memory_or_time(rt):
    limits = create_app(rt).state.rate_limits
    began = iter(range(1 << 24))

    def seconds() -> float:
        addresses = [str(IPv4Address(0x0A000000 + next(began))) for _ in range(1000)]
        started = time.process_time()
        for address in addresses:
            limits.count_failure(address)
        return time.process_time() - started

    empty = min(seconds() for _ in range(3))
    for _ in range(7):
        seconds()
    assert min(seconds() for _ in range(3)) < empty * 10
    assert len(limits.failures) == MAX_ADDRESSES
    limits.keys.count("a key")
    for _ in range(11):
        seconds()
    assert limits.keys.count("a key")[1] == (b"ratelimit-remaining", b"1"), "the count of a key is not reset"
