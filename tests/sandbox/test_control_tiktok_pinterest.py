"""Steering TikTok and Pinterest from another process, and the faults that every endpoint meets."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, Hang, World, create_app
from tests.sandbox.pinterest_caller import Pinner
from tests.sandbox.tiktok_caller import FILM, TikToker, code
from tests.support.hand_clock import HandClock


def test_what_happened_is_told(world: World, web: TestClient) -> None:
    world.tiktok.probes_video = False
    world.tiktok.processing_ticks = 0
    TikToker(web, world).post(title="one")
    Pinner(web, world).pin(title="two")
    told = web.get("/_control/tiktok").json()
    assert [(post["title"], post["media"][0]["size"]) for post in told["posts"]] == [("one", len(FILM))]
    (task,) = told["tasks"]
    assert (task["status"], task["puts"][0]["status"]) == ("PUBLISH_COMPLETE", 201)
    assert "upload_token" not in task
    told = web.get("/_control/pinterest").json()
    assert [pin["title"] for pin in told["pins"]] == ["two"]
    assert told["categories"] == {"org_write": 1}
    overview = web.get("/_control/").json()
    assert (overview["tiktok"]["post_count"], overview["pinterest"]["pin_count"]) == (1, 1)
    assert overview["tiktok"]["calls"] == {"video_init": 1, "upload_chunk": 1}


def test_accounts_tokens_and_fates_can_be_changed(world: World, web: TestClient) -> None:
    demo, pinner = TikToker(web, world), Pinner(web, world)

    def act(path: str, body: dict[str, Any]) -> Any:
        answer = web.post(f"/_control/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert act("tiktok/users", {"username": "demo", "private": True})["private"] is True
    assert act("tiktok/accounts", {"username": "neu", "private": True, "max_duration": 180})["max_duration"] == 180
    act("tiktok/apps", {"client_key": "app", "client_secret": "s", "audited": False})
    act("tiktok/settings", {"verified_prefixes": ["https://a.test/"], "limits": {"video_init": 60}, "audited": False})
    assert world.tiktok.verified_prefixes == ["https://a.test/"]
    act("tiktok/fates", {"fate": "internal", "times": 2})
    assert list(world.tiktok.tasks.fates) == ["internal", "internal"]
    act("pinterest/fates", {"fate": "fails"})
    board = act("pinterest/boards", {"account": "demo", "name": "From outside"})
    assert world.pinterest.boards[board["id"]].name == "From outside"
    act("pinterest/users", {"username": "demo", "account_type": "PINNER"})
    act("tiktok/tokens", {"username": "demo", "end": "expired"})
    act("pinterest/tokens", {"username": "demo", "end": "removed"})
    assert code(demo.creator()) == "access_token_invalid"
    assert pinner.call("GET", "/boards").status_code == 401
    act("tiktok/faults", {"endpoint": "creator_info", "fault": "refuses", "args": {"code": "spam_risk_too_many_posts"}})
    assert demo.creator().status_code == 200


def test_a_prefix_is_verified_and_a_draft_finished_from_outside(world: World, web: TestClient) -> None:
    world.tiktok.probes_video = False
    world.tiktok.processing_ticks = 0
    body = {"prefix": "https://a.test/m/", "file_name": "t.txt", "content": "proof"}
    assert web.post("/_control/tiktok/properties", json=body | {"prefix": "https://a.test/m"}).status_code == 400
    world.tiktok.fetch = {"https://a.test/m/t.txt": b"proof"}.__getitem__
    claim = web.post("/_control/tiktok/properties", json=body).json()
    assert claim == body | {"verified": True}
    demo = TikToker(web, world)
    begun = demo.draft()
    demo.put(begun, FILM)
    draft = begun.json()["data"]["publish_id"]
    assert len(web.post("/_control/tiktok/drafts", json={"publish_id": draft, "posts": 2}).json()["posts"]) == 2
    assert web.post("/_control/tiktok/drafts", json={"publish_id": draft}).status_code == 400


TIKTOK = {
    "authorize": ("GET", "/v2/auth/authorize/"),
    "token": ("POST", "/v2/oauth/token/"),
    "revoke": ("POST", "/v2/oauth/revoke/"),
    "user_info": ("GET", "/v2/user/info/"),
    "creator_info": ("POST", "/v2/post/publish/creator_info/query/"),
    "video_init": ("POST", "/v2/post/publish/video/init/"),
    "inbox_init": ("POST", "/v2/post/publish/inbox/video/init/"),
    "content_init": ("POST", "/v2/post/publish/content/init/"),
    "upload_chunk": ("PUT", "/upload/video/"),
    "status_fetch": ("POST", "/v2/post/publish/status/fetch/"),
    "cancel": ("POST", "/v2/post/publish/cancel/"),
    "video_query": ("POST", "/v2/video/query/"),
    "video_list": ("POST", "/v2/video/list/"),
}
PINTEREST = {
    "authorize": ("GET", "/oauth/"),
    "token": ("POST", "/v5/oauth/token"),
    "revoke": ("POST", "/v5/oauth/token/revoke"),
    "user_account": ("GET", "/v5/user_account"),
    "list_boards": ("GET", "/v5/boards"),
    "read_board": ("GET", "/v5/boards/1"),
    "create_board": ("POST", "/v5/boards"),
    "list_sections": ("GET", "/v5/boards/1/sections"),
    "create_section": ("POST", "/v5/boards/1/sections"),
    "create_pin": ("POST", "/v5/pins"),
    "read_pin": ("GET", "/v5/pins/1"),
    "list_pins": ("GET", "/v5/boards/1/pins"),
    "list_own_pins": ("GET", "/v5/pins"),
    "delete_pin": ("DELETE", "/sandbox/v5/pins/1"),
    "register_media": ("POST", "/sandbox/v5/media"),
    "upload_media": ("POST", "/upload/"),
    "media_status": ("GET", "/v5/media/1"),
    "list_media": ("GET", "/v5/media"),
}


@pytest.mark.parametrize(("name", "paths"), [("tiktok", TIKTOK), ("pinterest", PINTEREST)])
def test_every_endpoint_takes_every_kind_of_fault(
    world: World, web: TestClient, name: str, paths: dict[str, tuple[str, str]]
) -> None:
    network = world.networks[name]
    assert set(paths) == set(network.endpoints)
    for endpoint, (method, path) in paths.items():
        network.next(endpoint).fails_with(503)
        assert web.request(method, f"/{name}{path}").status_code == 503, endpoint
        network.next(endpoint).rate_limited(60, "retry-after")
        assert web.request(method, f"/{name}{path}").headers["retry-after"] == "60"
        network.next(endpoint).times_out_after_effect()
        with pytest.raises(Hang):
            web.request(method, f"/{name}{path}")
        assert network.statuses(endpoint) == [503, 429, 0]


@pytest.mark.parametrize("name", ["tiktok", "pinterest"])
def test_chaos_repeats_itself_for_a_seed(clock: HandClock, name: str) -> None:
    def run(seed: int) -> list[str]:
        world = World(clock)
        world.instant_faults = True
        world.tiktok.limits["video_init"] = world.tiktok.posts_per_day = 10**6
        outcomes = []
        with TestClient(create_app(world)) as web:
            tiktoker, pinner = TikToker(web, world), Pinner(web, world)
            world.networks[name].chaos(seed, 0.5)
            for _ in range(40):
                try:
                    answer = tiktoker.begin() if name == "tiktok" else pinner.pin()
                    outcomes.append(str(answer.status_code))
                except (Hang, ConnectionCut) as error:
                    outcomes.append(type(error).__name__)
        return [*outcomes, str(len(world.tiktok.tasks.all)), str(len(world.pinterest.pins))]

    first = run(7)
    assert first == run(7)
    assert first != run(8)
    assert len(set(first)) > 4


def test_requests_are_recorded_without_credentials(world: World, web: TestClient) -> None:
    world.record = True
    demo, pinner = TikToker(web, world), Pinner(web, world)
    demo.put(demo.begin(), FILM)
    pinner.film()
    begun, put, registered, uploaded = world.requests
    assert begun.json["source_info"]["video_size"] == len(FILM)
    assert (put.path, set(put.query), put.fields) == ("/upload/video/", {"upload_id"}, (("", None, len(FILM)),))
    assert registered.json == {"media_type": "video"}
    assert uploaded.fields[-1][0] == "file"
    (task,) = world.tiktok.tasks.all.values()
    told = repr(list(world.requests))
    assert task.upload_token not in told
    assert demo.token not in told
