"""Who may call X's API, how often, and for whose money."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.x_client import XClient, message
from tests.support.hand_clock import HandClock


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer nobody"}, {"authorization": "Basic x"}])
def test_a_missing_or_unknown_token_is_401(web: TestClient, header: dict[str, str]) -> None:
    assert web.get("/x/2/users/me", headers=header).status_code == 401


@pytest.mark.parametrize(
    ("missing", "method", "path"),
    [
        ("media.write", "POST", "/2/media/upload"),
        ("media.write", "POST", "/2/media/upload/initialize"),
        ("media.write", "POST", "/2/media/metadata"),
        ("media.write", "GET", "/2/media/upload"),
        ("tweet.write", "POST", "/2/tweets"),
        ("users.read", "GET", "/2/users/me"),
        ("tweet.read", "GET", "/2/users/1/tweets"),
    ],
)
def test_every_endpoint_needs_its_scope(world: World, web: TestClient, missing: str, method: str, path: str) -> None:
    scopes = tuple({"tweet.read", "tweet.write", "users.read", "media.write"} - {missing})
    answer = XClient(web, world, "demo", scopes).call(method, path)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Forbidden")


def test_a_suspended_account_is_told_so(x: XClient) -> None:
    x.account.suspended = True
    assert x.post("a").json()["type"].endswith("/user-suspended")


def test_every_answer_tells_the_window(x: XClient, clock: HandClock) -> None:
    first = x.post("one")
    clock.forward(10)
    second = x.post("one")
    reset = str(int(clock.now().timestamp()) + 890)
    for answer, left in ((first, "99"), (second, "98")):
        assert answer.headers["x-rate-limit-limit"] == "100"
        assert answer.headers["x-rate-limit-remaining"] == left
        assert answer.headers["x-rate-limit-reset"] == reset
    assert second.status_code == 403, "a refusal counts too"
    assert x.web.get("/x/2/users/me").headers["x-rate-limit-limit"] == "75", "without a token too"


def test_a_full_window_is_429_until_it_ends(world: World, x: XClient, clock: HandClock) -> None:
    world.x.limits["POST /2/tweets"] = 2
    assert [x.post(f"n{number}").status_code for number in range(3)] == [201, 201, 429]
    clock.forward(899)
    assert x.post("still").status_code == 429
    clock.forward(1)
    assert x.post("again").status_code == 201
    assert len(world.x.posts) == 3


def test_windows_belong_to_accounts_and_endpoints(world: World, web: TestClient, x: XClient) -> None:
    world.x.limits["POST /2/tweets"] = 1
    x.post("one")
    assert x.call("GET", "/2/users/me").status_code == 200
    assert XClient(web, world, "studio").post("one").status_code == 201


def test_the_day_has_a_window_of_its_own_when_asked_for(world: World, x: XClient, clock: HandClock) -> None:
    assert not [name for name in x.post("zero").headers if "24hour" in name]
    world.x.daily_limits["POST /2/tweets"] = 1
    first = x.post("one")
    assert first.headers["x-user-limit-24hour-remaining"] == "0"
    clock.forward(1000)
    second = x.post("two")
    assert second.status_code == 429
    assert int(second.headers["x-rate-limit-remaining"]) > 0
    assert int(second.headers["x-user-limit-24hour-reset"]) == int(clock.now().timestamp()) + 86400 - 1000


def test_without_credits_every_call_is_402_in_either_shape(world: World, x: XClient) -> None:
    world.x.credits_depleted = 1
    assert x.post("a").json()["title"] == "CreditsDepleted"
    world.x.credits_depleted = 2
    answer = x.call("GET", "/2/users/me")
    assert (answer.status_code, message(answer)) == (402, "credits depleted")
    assert world.x.posts == []


def test_an_unknown_path_is_404_in_the_networks_own_shape(web: TestClient) -> None:
    assert web.get("/x/2/nothing").json()["type"] == "about:blank"
    assert web.put("/x/2/tweets").status_code == 405
    assert web.post("/tiktok/v2/nothing/").json()["error"]["code"] == "invalid_params"
    assert web.get("/pinterest/v5/nothing").json()["message"] == "Not found."


def test_who_am_i_shows_the_fields_asked_for(web: TestClient, world: World) -> None:
    studio = XClient(web, world, "studio")
    fields = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
    data = studio.call("GET", "/2/users/me", params={"user.fields": fields}).json()["data"]
    assert set(data) == set(fields.split(","))
    assert (data["subscription_type"], data["verified_type"]) == ("Premium", "blue")
    assert web.get(data["profile_image_url"]).headers["content-type"] == "image/png"
    assert studio.call("GET", "/2/users/me", params={"user.fields": "shoe_size"}).status_code == 400
