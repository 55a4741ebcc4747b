"""Steering the sandbox from another process."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.x_caller import Caller


def test_posts_and_calls_can_be_counted(web: TestClient, demo: Caller) -> None:
    demo.post("one", made_with_ai=True)
    demo.post("one")
    shown = web.get("/_control/x").json()
    assert [(post["text"], post["options"]) for post in shown["posts"]] == [("one", {"made_with_ai": True})]
    assert shown["calls"] == {"create_post": 2}
    assert shown["in_flight"] == 0
    assert web.get("/_control/").json()["x"]["post_count"] == 1


@pytest.mark.parametrize("network", ["x", "tiktok", "pinterest"])
def test_tokens_are_handed_out(web: TestClient, network: str) -> None:
    granted = web.post(f"/_control/{network}/grant", json={"username": "demo"}).json()
    assert {"accessToken", "refreshToken", "expiresAt"} <= set(granted)


def test_faults_chaos_and_settings_can_be_set(world: World, web: TestClient, demo: Caller) -> None:
    fault = {
        "endpoint": "create_post",
        "fault": "fails_with",
        "args": {"status": 503, "after_effect": True},
        "times": 2,
    }
    assert web.post("/_control/x/faults", json=fault).status_code == 200
    assert [demo.post(f"n{number}").status_code for number in range(3)] == [503, 503, 201]
    web.post("/_control/x/chaos", json={"seed": 1, "rate": 1.0, "kinds": ["unavailable"]})
    assert demo.post("chaos").status_code == 503
    assert web.delete("/_control/x/faults").status_code == 200
    web.post("/_control/x/settings", json={"list_lag_seconds": 5, "limits": {"POST /2/tweets": 7}})
    assert (world.x.list_lag_seconds, world.x.limits["POST /2/tweets"], world.x.limits["GET /2/users/me"]) == (5, 7, 75)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("faults", {"endpoint": "create_post", "fault": "explodes"}),
        ("faults", {"endpoint": "create_tweet", "fault": "fails_with", "args": {"status": 500}}),
        ("faults", {"endpoint": "create_post"}),
        ("settings", {"list_lag": 5}),
        ("settings", {"tokens": 5}),
        ("grant", {}),
    ],
)
def test_a_mistake_is_400_and_says_which(web: TestClient, path: str, body: dict[str, Any]) -> None:
    answer = web.post(f"/_control/x/{path}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_reset_forgets_everything(world: World, web: TestClient, demo: Caller) -> None:
    demo.post("one")
    web.post("/_control/reset")
    assert world.x.posts == []
    assert demo.call("GET", "/2/users/me").status_code == 401


def test_requests_are_recorded_when_asked_for_and_without_credentials(world: World, demo: Caller) -> None:
    demo.post("unseen")
    world.record = True
    demo.post("seen", reply_settings="verified")
    demo.upload()
    created, uploaded = world.requests
    assert (created.method, created.path, created.json) == (
        "POST",
        "/2/tweets",
        {"text": "seen", "reply_settings": "verified"},
    )
    assert [name for name, _, _ in uploaded.fields] == ["media_category", "media"]
    assert demo.token not in repr(list(world.requests))
