"""A repeated request does its work once (contract 1.11)."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import stamp
from socialpub.core.errors import Unavailable
from socialpub.db.writer import WRITER_THREAD
from socialpub.publishing.posts import idempotency, posts
from socialpub.publishing.posts.idempotency import find
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.integration.uploads.caller import Reply
from tests.support.drain import drain
from tests.support.rows import artifact
from tests.support.select import select_value


@pytest.fixture
def draft(profile: str) -> dict[str, Any]:
    return {"post": {"body": "Hello"}, "profiles": [profile]}


def create(client: Client, body: Any, key: str = "k1", **headers: str) -> Reply:
    return client.send("POST", "/posts", body, idempotency_key=key, **headers)


def count(rt: Runtime) -> int:
    return int(select_value(rt.db, "SELECT count(*) FROM post"))


def test_a_repeated_request_gets_the_first_response(client, rt, draft, clock):
    first = create(client, draft)
    assert first.status == 201
    assert "idempotency-replayed" not in first.headers
    drain(rt, clock)
    clock.forward(3600)
    again = create(client, draft)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert count(rt) == 1


def test_only_the_parsed_json_is_compared(client, rt, draft):
    create(client, draft)
    raw = b'{ "profiles": ["%b"], "post": {"body": "Hell\\u006f"} }' % draft["profiles"][0].encode()
    assert create(client, raw).headers["idempotency-replayed"] == "true"
    other = create(client, {**draft, "post": {"body": "Hello!"}})
    assert (other.status, other.json()["code"]) == (409, "conflict")
    assert count(rt) == 1


def test_another_path_with_the_same_key_is_a_conflict(client, draft):
    create(client, draft)
    upload = {"fileName": "a.png", "mimeType": "image/png", "fileSize": 3}
    assert client.send("POST", "/uploads", upload, idempotency_key="k1").status == 409


def test_idempotency_keys_belong_to_an_api_key(client, rt, draft):
    create(client, draft)
    other = create(client, draft, authorization=f"Bearer {rt.write(api_keys.create, 'other')}")
    assert other.status == 201
    assert "idempotency-replayed" not in other.headers
    assert count(rt) == 2


def test_a_request_whose_time_has_passed_still_replays(client, rt, draft, clock):
    draft["post"]["scheduledAt"] = stamp(rt.now() + timedelta(minutes=1))
    first = create(client, draft)
    clock.forward(3600)
    assert create(client, draft).body == first.body
    assert create(client, draft, key="k2").status == 400


def test_after_a_day_the_key_is_free_again(client, rt, draft, clock):
    create(client, draft)
    clock.forward(24 * 3600 - 1)
    assert create(client, draft).headers["idempotency-replayed"] == "true"
    clock.forward(1)
    assert "idempotency-replayed" not in create(client, draft).headers
    assert count(rt) == 2
    clock.forward(24 * 3600)
    assert rt.write(idempotency.clean) == 1


def test_a_refused_request_is_not_stored(client, rt, draft):
    assert create(client, {**draft, "profiles": []}).status == 400
    assert create(client, {**draft, "media": [{"artifactId": draft["profiles"][0]}]}).status == 400
    first = create(client, draft)
    assert first.status == 201
    assert "idempotency-replayed" not in first.headers


def test_a_key_has_one_to_255_printable_characters(client, draft):
    assert create(client, draft, key="k" * 255).status == 201
    for wrong in ("", "k" * 256, "a\tb", "é"):
        assert create(client, draft, key=wrong).paths() == [["Idempotency-Key"]]


def test_a_replay_contains_newly_signed_urls(client, rt, draft, clock):
    draft["media"] = [{"artifactId": artifact(rt)}]
    first = create(client, draft).data["media"][0]["url"]
    upload = {"fileName": "a.png", "mimeType": "image/png", "fileSize": 3}
    reserved = client.send("POST", "/uploads", upload, idempotency_key="u").data
    clock.forward(1800)
    again = create(client, draft).data["media"][0]["url"]
    assert again.partition("?")[0] == first.partition("?")[0]
    assert again != first
    replayed = client.send("POST", "/uploads", upload, idempotency_key="u")
    assert replayed.headers["idempotency-replayed"] == "true"
    assert replayed.data["artifactId"] == reserved["artifactId"]
    clock.forward(2400)  # the first URL has expired, the replayed URL has not
    assert client.put(reserved, b"abc").status == 403
    assert client.put(replayed.data, b"abc").status == 200


# --- together and after a crash --------------------------------------------------------------------------------------


def test_concurrent_requests_create_one_post(client, rt, draft):
    async def together() -> list[Reply]:
        told = {"idempotency_key": "k1"}
        return await asyncio.gather(*(client.sending("POST", "/posts", draft, **told) for _ in range(5)))

    replies = client.run(together())
    assert sorted(reply.status for reply in replies)[0] == 201
    assert {reply.status for reply in replies} <= {201, 409}
    assert len({reply.data["id"] for reply in replies if reply.status == 201}) == 1
    assert count(rt) == 1


def test_a_repeat_is_a_conflict_while_the_first_request_is_running(client, rt, draft, monkeypatch):
    from socialpub.web.api import posts as api_posts

    write, repeats = api_posts.write_once, list[Reply]()

    async def write_late(*args: Any) -> Any:
        monkeypatch.undo()
        for body in (draft, {**draft, "post": {"body": "Other"}}):
            repeats.append(await client.sending("POST", "/posts", body, idempotency_key="k1"))
        return await write(*args)

    monkeypatch.setattr(api_posts, "write_once", write_late)
    assert create(client, draft).status == 201
    assert [(reply.status, reply.json()["code"]) for reply in repeats] == [(409, "conflict")] * 2
    assert create(client, draft).headers["idempotency-replayed"] == "true"
    assert count(rt) == 1


def test_a_canceled_request_whose_write_is_still_queued_creates_no_second_post(client, rt, draft, monkeypatch):
    """The lookup of the repeat runs before that write."""
    first = create(client, draft)
    with monkeypatch.context() as early:
        writes = lambda: threading.current_thread().name == WRITER_THREAD  # noqa: E731
        early.setattr(idempotency, "find", lambda *args: find(*args) if writes() else None)
        again = create(client, draft)
    assert (again.status, again.data["id"]) == (201, first.data["id"])
    assert count(rt) == 1


def test_a_crash_between_acceptance_and_response_creates_no_second_post(client, rt, draft, monkeypatch):
    from socialpub.web.api import posts as api_posts

    with monkeypatch.context() as crash:
        crash.setattr(api_posts, "render", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            create(client, draft)
    assert count(rt) == 1
    restarted = Client(create_app(rt), client.key)
    again = create(restarted, draft)
    assert again.status == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert count(rt) == 1
    restarted.__exit__()


def test_after_a_failed_write_a_retry_works(client, rt, draft, monkeypatch):
    def fails(*_: object) -> str:
        raise Unavailable("The disk is full.")

    with monkeypatch.context() as full:
        full.setattr(posts, "create", fails)
        reply = create(client, draft)
        assert (reply.status, reply.json()["code"]) == (503, "unavailable")
        assert reply.headers["retry-after"]
    assert create(client, draft).status == 201
    assert count(rt) == 1


def test_a_failure_after_which_nothing_can_be_written_frees_the_key(client, rt, draft, monkeypatch):
    write_soon, failing = rt.db.write_soon, list[object]()

    def fails(*_: object) -> str:
        failing.append(1)
        raise Unavailable("The database is locked.")

    def write(*args: Any) -> Any:
        return fails() if failing else write_soon(*args)

    with monkeypatch.context() as locked:
        locked.setattr(posts, "create", fails)
        locked.setattr(rt.db, "write_soon", write)
        assert create(client, draft).status == 503
    assert create(client, {**draft, "post": {"body": "Changed"}}).status == 201
    assert count(rt) == 1
