"""`GET /posts?deliveryStatus=`, also with every other filter (contract 1.16)."""

import random
from collections import Counter
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.db.queries import post_list
from socialpub.db.states import State
from socialpub.db.tables import counters
from socialpub.runtime import Runtime
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile, end_deliveries
from tests.support.hand_clock import HandClock
from tests.support.select import select_one

OUTCOMES = ("pending", "published", "failed", "unknown", "canceled")


@pytest.fixture
def stock(client: Client, rt: Runtime, clock: HandClock) -> list[Any]:
    """Posts with all combinations of outcomes, newest first."""
    profiles = [
        *(add_profile(rt, "x", name) for name in "ab"),
        add_profile(rt, "tiktok", "c"),
        add_profile(rt, "pinterest", "d"),
    ]
    draw = random.Random(9)
    ends = [State.QUEUED, State.PUBLISHED, State.PUBLISHED, State.FAILED, State.UNCONFIRMED]
    for number in range(60):
        chosen = draw.sample(profiles, draw.randint(1, 3))
        at = rt.now() + timedelta(hours=draw.randint(1, 5)) if number % 3 == 0 else None
        post = accept(rt, *chosen, at=at)
        if number % 6 == 0:
            client.send("POST", f"/posts/{post}/cancel")
        elif number % 6 != 3:
            end_deliveries(rt, post, *(draw.choice(ends) for _ in chosen))
        if number % 4:
            clock.forward(1)
    posts: list[Any] = client.send("GET", "/posts?perPage=100").data
    assert len(posts) == 60
    return posts


def outcome(delivery: Any) -> str:
    unknown = delivery.get("errorMessage", "").startswith("Outcome unknown:")
    return "unknown" if unknown else delivery["status"]


def listed(client: Client, key: str = "", **query: str) -> tuple[list[str], int]:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    reply = client.send("GET", f"/posts?perPage=100&{asked}", key=key)
    assert reply.status == 200, reply.body
    return [post["id"] for post in reply.data], reply.json()["pagination"]["total"]


def test_every_combination_of_filters_finds_the_matching_posts(client: Client, stock: list[Any]) -> None:
    some = {delivery["profileId"] for post in stock[:3] for delivery in post["deliveries"]}
    after = sorted(post["scheduledAt"] for post in stock if "scheduledAt" in post)[5]
    found = 0
    for wanted, status, profiles, providers, window in product(
        OUTCOMES,
        (None, "pending", "settled", "scheduled", "canceled"),
        (None, some),
        (None, {"x"}, {"tiktok", "pinterest"}),
        (None, after),
    ):
        query = {"deliveryStatus": wanted}
        if status:
            query["status"] = status
        if profiles:
            query["profileIds"] = ",".join(profiles)
        if providers:
            query["providers"] = ",".join(providers)
        if window:
            query["scheduledAfter"] = window
        expected = [
            post["id"]
            for post in stock
            if (status is None or post["status"] == status)
            and (window is None or post.get("scheduledAt", "") >= window)
            and any(
                outcome(one) == wanted
                and (profiles is None or one["profileId"] in profiles)
                and (providers is None or one["provider"] in providers)
                for one in post["deliveries"]
            )
        ]
        assert listed(client, **query) == (expected, len(expected)), query
        found += len(expected)
    assert found > 500


def test_a_limited_key_filters_only_visible_posts(client: Client, rt: Runtime, stock: list[Any]) -> None:
    key = rt.write(api_keys.create, "limited", providers=["x"])
    for wanted in OUTCOMES:
        expected = [
            post["id"]
            for post in stock
            if all(one["provider"] == "x" for one in post["deliveries"])
            and any(outcome(one) == wanted for one in post["deliveries"])
        ]
        assert listed(client, key, deliveryStatus=wanted) == (expected, len(expected))


def test_counters_and_outcomes_match_the_rows(rt: Runtime, stock: list[Any]) -> None:
    ended = Counter((one["provider"], outcome(one)) for post in stock for one in post["deliveries"])
    assert counters.outcomes(rt.db) == {key: n for key, n in ended.items() if key[1] != "pending"}
    for post in stock:
        row = select_one(rt.db, "SELECT outcomes FROM post WHERE id = ?", (post["id"],))
        assert row is not None
        in_order = sorted(post["deliveries"], key=lambda one: str(one["profileId"]))
        assert row[0] == "".join(post_list.OUTCOME_LETTERS[outcome(one)] for one in in_order)
