"""Keys for agents: a number of posts a day (contract 10.3)."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import api_keys, key_limits
from socialpub.core.clock import stamp
from socialpub.db.states import State
from socialpub.runtime import Runtime
from tests.integration.api.client import Client, form
from tests.support.appliance import accept, add_profile, end_deliveries
from tests.support.hand_clock import HandClock
from tests.support.select import select_value

LIMIT = 4


@pytest.fixture
def three(rt: Runtime) -> list[str]:
    return [add_profile(rt, "x", account) for account in ("a", "b", "c")]


@pytest.fixture
def key(client: Client, rt: Runtime) -> str:
    client.key = rt.write(api_keys.create, "agent", posts_per_day=LIMIT)
    return client.key


def post(client: Client, *profiles: str, text: str = "Hello", **headers: str) -> Any:
    return client.send("POST", "/posts", {"post": {"body": text}, "profiles": list(profiles)}, **headers)


def left(client: Client, rt: Runtime) -> int | None:
    caller = api_keys.authenticate(rt, client.key)
    assert caller is not None
    return key_limits.count_left(rt, caller)


@pytest.mark.usefixtures("key")
def test_each_profile_of_each_post_counts_until_it_has_left_the_last_day(
    client: Client, rt: Runtime, three: list[str], clock: HandClock
) -> None:
    assert left(client, rt) == LIMIT
    assert post(client, *three[:2]).status == 201
    clock.forward(3600)
    assert post(client, three[0]).status == 201
    clock.forward(3600.5)
    assert left(client, rt) == 1
    refused = post(client, *three)
    assert (refused.status, refused.json()["code"]) == (429, "rateLimited")
    assert refused.headers["retry-after"] == str(22 * 3600), "the first post has left by then, and its two are enough"
    assert "4 posts in 24 hours" in refused.json()["detail"]
    assert stamp(rt.now() + timedelta(hours=22, seconds=-0.5)) in refused.json()["detail"]
    assert select_value(rt.db, "SELECT count(*) FROM post") == 2
    clock.forward(22 * 3600 - 1)
    assert post(client, *three).status == 429
    clock.forward(1)
    assert post(client, *three).status == 201
    assert left(client, rt) == 0


@pytest.mark.usefixtures("key")
def test_a_post_to_more_profiles_than_the_limit_is_an_invalid_request(client: Client, rt: Runtime) -> None:
    many = [add_profile(rt, "x", f"account {number}") for number in range(LIMIT + 1)]
    for path in ("/posts", "/posts/validate", "/posts?strict=true"):
        refused = client.send("POST", path, {"post": {"body": "Hello"}, "profiles": many})
        assert (refused.status, refused.paths()) == (400, [["profiles"]]), path
        assert "at most 4" in refused.json()["detail"]
    failed = accept(rt, *many)
    end_deliveries(rt, failed, *[State.FAILED] * len(many))
    refused = client.send("POST", f"/posts/{failed}/retry")
    assert (refused.status, refused.paths()) == (400, [["profiles"]])


@pytest.mark.usefixtures("key")
def test_replays_do_not_count_while_retries_and_canceled_posts_do(
    client: Client, rt: Runtime, three: list[str]
) -> None:
    later = {"post": {"body": "Later", "scheduledAt": stamp(rt.now() + timedelta(hours=1))}, "profiles": three[:1]}
    first = client.send("POST", "/posts", later, idempotency_key="once")
    for _ in range(3):
        assert client.send("POST", "/posts", later, idempotency_key="once").headers["idempotency-replayed"] == "true"
    assert client.send("POST", f"/posts/{first.data['id']}/cancel").status == 200
    assert left(client, rt) == LIMIT - 1
    of_another_key = accept(rt, *three)
    end_deliveries(rt, of_another_key, State.FAILED, State.FAILED, State.PUBLISHED)
    assert client.send("POST", f"/posts/{of_another_key}/retry").status == 201
    assert left(client, rt) == LIMIT - 3
    assert post(client, *three[:2]).status == 429


@pytest.mark.usefixtures("key")
def test_an_invalid_post_is_refused_as_invalid_before_the_limit_is_checked(
    client: Client, rt: Runtime, three: list[str]
) -> None:
    assert post(client, *three).status == 201
    assert post(client, three[0]).status == 201
    assert post(client, "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01").status == 400
    refused = post(client, three[0], idempotency_key="later")
    assert (refused.status, refused.headers["retry-after"]) == (429, "86400")
    payload = b'{"post": {"body": "x"}, "profiles": ["%b"]}' % three[0].encode()
    in_form = client.send("POST", "/posts", form(payload), content_type="multipart/form-data; boundary=x")
    assert in_form.status == 429
    assert select_value(rt.db, "SELECT count(*) FROM idempotency") == 0, "the same request may succeed later"


@pytest.mark.usefixtures("key")
def test_the_clock_neither_frees_nor_blocks_a_key(
    client: Client, rt: Runtime, three: list[str], clock: HandClock
) -> None:
    assert post(client, *three).status == 201
    for seconds in (3 * 86400.0, -10 * 86400.0):
        clock.jump(seconds)
        rt.db.follow_clock()
        assert left(client, rt) == 1
    clock.forward(86400)
    assert left(client, rt) == LIMIT
    assert rt.write(key_limits.clean) == 1


@pytest.mark.parametrize("limit", [{"posts_per_day": 5}, {"approval": True}])
def test_a_key_with_a_limit_cannot_disconnect_a_profile(
    client: Client, rt: Runtime, profile: str, limit: dict[str, Any]
) -> None:
    agent = rt.write(api_keys.create, "agent", **limit)
    for profile_id in (profile, "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"):
        assert client.send("POST", f"/profiles/{profile_id}/disconnect", key=agent).status == 403
    assert client.send("GET", f"/profiles/{profile}").data["status"] == "active"
    assert client.send("POST", f"/profiles/{profile}/disconnect").status == 204


@pytest.mark.parametrize("limit", [{"posts_per_day": 5}, {"approval": True}])
def test_a_key_with_a_limit_edits_and_cancels_only_the_posts_that_it_created(
    client: Client, rt: Runtime, three: list[str], limit: dict[str, Any]
) -> None:
    agent, other = (rt.write(api_keys.create, "agent", **limit, profiles=three[:1]) for _ in range(2))
    later = stamp(rt.now() + timedelta(hours=1))

    def create(key: str, profile: str = three[0]) -> str:
        draft = {"post": {"body": "Mine", "scheduledAt": later}, "profiles": [profile]}
        return str(client.send("POST", "/posts", draft, key=key).data["id"])

    def change(key: str, post_id: str, body: Any) -> tuple[int, int]:
        edited = client.send("PATCH", f"/posts/{post_id}", body, key=key)
        canceled = client.send("POST", f"/posts/{post_id}/cancel", key=key)
        return edited.status, canceled.status

    edit, owners = {"post": {"body": "Changed"}}, accept(rt, three[0], at=rt.now() + timedelta(hours=1))
    foreign = (create(client.key), create(other), owners)
    for body in (edit, {"post": {"body": "Mine"}}, {"post": {"body": 5}}, {}):
        assert [change(agent, post_id, body) for post_id in foreign] == [(403, 403)] * 3, "before the body is judged"
    unseen = create(client.key, three[1])
    assert change(agent, unseen, edit) == change(agent, "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01", edit) == (404, 404)
    assert [client.send("GET", f"/posts/{post_id}").data.get("body") for post_id in foreign[:2]] == ["Mine"] * 2
    mine = create(agent)
    assert client.send("PATCH", f"/posts/{mine}", {"post": {"body": "By another key"}}).status == 200
    assert change(agent, mine, edit) == (200, 200), "it stays the key's own post"
    assert change(client.key, create(agent), edit) == (200, 200), (
        "a key without a limit changes every post that it sees"
    )


def test_a_retry_with_a_limited_key_is_a_post_of_that_key(client: Client, rt: Runtime, profile: str) -> None:
    agent, failed = rt.write(api_keys.create, "agent", approval=True), accept(rt, profile)
    end_deliveries(rt, failed, State.FAILED)
    retried = client.send("POST", f"/posts/{failed}/retry", key=agent)
    assert retried.status == 201
    assert select_value(rt.db, "SELECT key_id FROM post WHERE id = ?", (retried.data["id"],)) == agent.split("_")[1]
