"""Bodies of one mebibyte that try to cost much time (contract 1.19).

Each is compared with an ordinary body of the same size that has one error.
"""

import json
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import new_id
from socialpub.runtime import Runtime
from tests.integration.uploads.caller import Reply
from tests.support.hand_clock import START

SIZE = 1 << 20
RATIO = 150
"""The maximum cost relative to an ordinary body: about four times the cost of the worst body."""
HALF = b'"\\ud800"'


def draft(profile: str, **more: Any) -> bytes:
    return json.dumps({"post": {"body": "x"}, "profiles": [profile], **more}).encode()


def filled(head: bytes, item: bytes, tail: bytes, between: bytes = b",") -> bytes:
    count = (SIZE - len(head) - len(tail)) // (len(item) + len(between))
    return head + between.join([item] * count) + tail


def profiles(items: list[Any]) -> bytes:
    return json.dumps({"post": {"body": "x"}, "profiles": items}).encode()


HOSTILE: dict[str, Callable[[str], bytes]] = {
    "unknown ids": lambda _: profiles([new_id(START) for _ in range(26_000)]),
    "nearly known names": lambda profile: draft(profile, **{f"profile{number}": 1 for number in range(55_000)}),
    "unknown names in every media item": lambda profile: draft(
        profile, media=[{f"n{number}": 1 for number in range(3_000)}] * 20
    ),
    "a name of a mebibyte": lambda profile: draft(profile, **{"s" * (SIZE - 200): 1}),
    "very many media items": lambda _: filled(b'{"post":{"body":"x"},"profiles":["a"],"media":[', b"{}", b"]}"),
    "deep half surrogates": lambda _: filled(b'{"post":' + b"[" * 800, HALF, b"]" * 800 + b"}"),
    "one name many times": lambda _: filled(b"{", b'"post":{}', b"}"),
    "options full of numbers": lambda profile: draft(profile, providerOptions={"x": {"a": [1] * (SIZE // 4)}}),
    "a number of a mebibyte": lambda _: b'{"post":' + b"9" * (SIZE - 20) + b"}",
    "a time of a mebibyte": lambda profile: json.dumps(
        {"post": {"scheduledAt": "2026-11-21T11:30:00." + "1" * (SIZE - 200)}, "profiles": [profile]}
    ).encode(),
}


@pytest.fixture
def reader_key(rt: Runtime) -> str:
    return rt.write(api_keys.create, "reader", "read")


def fastest(ask: Callable[[], Reply], times: int = 2) -> tuple[float, Reply]:
    found = []
    for _ in range(times):
        # CPU time, which other processes do not affect.
        began = process_time()
        reply = ask()
        found.append((process_time() - began, reply))
    return min(seconds for seconds, _ in found), found[-1][1]


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_cost_of_a_body_depends_on_its_size_only(client, profile, reader_key, kind):
    body = HOSTILE[kind](profile)
    assert SIZE // 2 < len(body) <= SIZE
    calm = draft(profile, note=list(range(SIZE // 8)))
    usual, reply = fastest(lambda: client.send("POST", "/posts/validate", calm, key=reader_key))
    assert reply.status == 400
    taken, reply = fastest(lambda: client.send("POST", "/posts/validate", body, key=reader_key))
    assert reply.status == 400
    assert len(reply.json()["errors"]) <= 100
    assert len(reply.body) <= 2 * len(body)
    assert taken <= RATIO * usual
