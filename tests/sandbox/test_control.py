"""Steering the sandbox from another process, and the record of its requests."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import create_app
from tests.sandbox.clients import error_code
from tests.sandbox.files import MP4
from tests.stand_ins import World


def test_posts_and_calls_can_be_counted(web, x):
    x.post("one", made_with_ai=True)
    x.post("one")
    shown = web.get("/_control/x").json()
    assert [(post["text"], post["options"]) for post in shown["posts"]] == [("one", {"made_with_ai": True})]
    assert shown["calls"] == {"create_post": 2}
    assert shown["in_flight"] == 0
    assert web.get("/_control/").json()["x"]["post_count"] == 1


def test_what_happened_is_shown(world, web, tiktok, pinterest):
    world.tiktok.probes_video = False
    world.tiktok.processing_ticks = 0
    tiktok.post(title="one")
    pinterest.pin(title="two")
    shown = web.get("/_control/tiktok").json()
    assert [(post["title"], post["media"][0]["size"]) for post in shown["posts"]] == [("one", len(MP4))]
    (task,) = shown["tasks"]
    assert (task["status"], task["chunks"]) == ("PUBLISH_COMPLETE", 1)
    assert "upload_token" not in task
    shown = web.get("/_control/pinterest").json()
    assert [pin["title"] for pin in shown["pins"]] == ["two"]
    assert shown["categories"] == {"org_write": 1}
    overview = web.get("/_control/").json()
    assert (overview["tiktok"]["post_count"], overview["pinterest"]["pin_count"]) == (1, 1)
    assert overview["tiktok"]["calls"] == {"video_init": 1, "upload_chunk": 1}


@pytest.mark.parametrize("network", ["x", "tiktok", "pinterest", "bluesky"])
def test_tokens_are_handed_out(web, network):
    granted = web.post(f"/_control/{network}/grant", json={"username": "demo"}).json()
    assert {"accessToken", "refreshToken", "expiresAt"} <= set(granted)


def test_faults_chaos_and_settings_can_be_set(world, web, x):
    fault = {
        "endpoint": "create_post",
        "fault": "fails_with",
        "args": {"status": 503, "after_effect": True},
        "times": 2,
    }
    assert web.post("/_control/x/faults", json=fault).status_code == 200
    assert [x.post(f"n{number}").status_code for number in range(3)] == [503, 503, 201]
    web.post("/_control/x/chaos", json={"seed": 2, "rate": 1.0})
    assert x.post("chaos").status_code == 503
    assert web.delete("/_control/x/faults").status_code == 200
    web.post("/_control/x/settings", json={"list_lag_seconds": 5, "limits": {"POST /2/tweets": 7}})
    assert (world.x.list_lag_seconds, world.x.limits["POST /2/tweets"], world.x.limits["GET /2/users/me"]) == (5, 7, 75)


def test_accounts_tokens_and_fates_can_be_changed(world, web, tiktok, pinterest):
    def act(path: str, body: dict[str, Any]) -> Any:
        answer = web.post(f"/_control/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert act("tiktok/users", {"username": "demo", "private": True})["private"] is True
    assert act("tiktok/accounts", {"username": "neu", "private": True, "max_duration": 180})["max_duration"] == 180
    act("tiktok/fates", {"fate": "internal", "times": 2})
    assert list(world.tiktok.fates) == ["internal", "internal"]
    act("pinterest/fates", {"fate": "fails"})
    act("pinterest/users", {"username": "demo", "account_type": "PINNER"})
    act("tiktok/tokens", {"username": "demo", "end": "expired"})
    act("pinterest/tokens", {"username": "demo", "end": "removed"})
    assert error_code(tiktok.creator()) == "access_token_invalid"
    assert pinterest.call("GET", "/boards").status_code == 401
    act("tiktok/faults", {"endpoint": "creator_info", "fault": "refuses", "args": {"code": "spam_risk_too_many_posts"}})
    assert tiktok.creator().status_code == 200


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
def test_a_mistake_is_400_and_says_which(web, path, body):
    answer = web.post(f"/_control/x/{path}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_reset_forgets_everything(world, web, x):
    x.post("one")
    web.post("/_control/reset")
    assert world.x.posts == []
    assert x.call("GET", "/2/users/me").status_code == 401


@pytest.mark.parametrize("network", ["x", "tiktok", "pinterest", "bluesky"])
def test_an_account_is_changed_and_stays_so_over_a_restart(tmp_path, network):
    world = World(journal=tmp_path / "journal.jsonl")
    web = TestClient(create_app(world))
    below = ".test" if network == "bluesky" else ""
    change = {"username": "demo", "handle": f"renamed{below}", "name": "Renamed", "picture": "Zebra"}
    assert web.post(f"/_control/{network}/users", json=change).status_code == 200
    taken = {"username": "renamed", "handle": f"studio{below}"}
    assert web.post(f"/_control/{network}/users", json=taken).status_code == 400
    world.close()
    again: Any = World(journal=tmp_path / "journal.jsonl").networks[network]
    account = again.existing_account("renamed")
    assert (account.picture, getattr(account, again.name_field)) == ("Zebra", "Renamed")


# --- the record of requests -------------------------------------------------------------------------------------------


def test_requests_are_recorded_when_asked_for_and_without_credentials(world, x):
    x.post("unseen")
    world.record = True
    x.post("seen", reply_settings="verified")
    x.upload()
    created, uploaded = world.requests
    assert (created.method, created.path, created.json) == (
        "POST",
        "/2/tweets",
        {"text": "seen", "reply_settings": "verified"},
    )
    assert [name for name, _, _ in uploaded.fields] == ["media_category", "media"]
    assert x.token not in repr(list(world.requests))
