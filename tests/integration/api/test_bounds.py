"""Limits of one post, and lists of the largest posts (contract 1.19)."""

import json
from datetime import timedelta
from typing import Any

import pytest

from socialpub.core.clock import stamp
from socialpub.db.models import ProfileRow
from socialpub.db.queries import post_list
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile

MOST = 16 * 1024


def options_of(size: int, letter: str = "x") -> dict[str, Any]:
    """Return options with this size as compact JSON in UTF-8."""
    empty = len(json.dumps({"title": ""}, separators=(",", ":")))
    return {"title": letter * ((size - empty) // len(letter.encode()))}


def draft(profile: str, options: Any) -> dict[str, Any]:
    return {"post": {"body": "x"}, "profiles": [profile], "providerOptions": {"x": options}}


def test_the_size_of_options_is_counted_as_compact_utf8(client, profile):
    for options in (options_of(MOST), {"title": "é" * ((MOST - 12) // 2)}):
        assert client.send("POST", "/posts", draft(profile, options)).status == 201
    for options in (options_of(MOST + 1), {"title": "é" * ((MOST - 12) // 2 + 1)}):
        for path in ("/posts", "/posts/validate"):
            reply = client.send("POST", path, draft(profile, options))
            assert (reply.status, reply.paths()) == (400, [["providerOptions", "x"]])
            assert "at most 16 KiB (16384 bytes)" in reply.json()["detail"]


def test_stored_options_count_toward_the_limit(client, rt, profile):
    post = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, options={"note": "y" * 9000}))
    half = options_of(9000)
    for reply in (
        client.send("POST", "/posts", draft(profile, half)),
        client.send("POST", "/posts/validate", draft(profile, half)),
        client.send("PATCH", f"/posts/{post}", {"providerOptions": {"x": half}}),
    ):
        assert (reply.status, reply.paths()) == (400, [["providerOptions", "x"]])
    # The key of the post replaces the stored key.
    assert client.send("POST", "/posts", draft(profile, {"note": "y" * 9000})).status == 201


class Untouched:
    """Raises an error on every access."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


TOO_LARGE = {
    "unknown keys": {f"repl{number:x}": 1 for number in range(70_000)},
    "a list of texts": {"a": [f"a{number:x}" for number in range(90_000)]},
    "a list of numbers": {"a": [1] * 300_000},
    "one text": {"a": "x" * 900_000},
    "many levels": {"a": [[[[["x" * 100] * 10] * 10] * 10] * 5]},
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_options_that_are_too_large_are_refused_before_they_are_encoded(client, profile, monkeypatch, kind):
    written: list[str] = []

    class Encoder(json.JSONEncoder):
        def encode(self, o: Any) -> str:
            written.append(super().encode(o))
            return written[-1]

    monkeypatch.setattr("socialpub.providers.options._COMPACT", Encoder())
    monkeypatch.setattr("socialpub.core.validation.difflib", Untouched())
    body = json.dumps(draft(profile, TOO_LARGE[kind]), separators=(",", ":")).encode()
    assert 300_000 < len(body) < 1 << 20
    reply = client.send("POST", "/posts/validate", body)
    assert (reply.status, reply.paths()) == (400, [["providerOptions", "x"]])
    assert len(reply.body) < 500
    assert sum(map(len, written)) < MOST


def test_a_body_with_too_many_arrays_is_refused_before_parsing(client, profile, monkeypatch):
    """An empty array has 2 bytes in JSON and 60 in memory."""
    body = json.dumps(draft(profile, {"a": [[]] * 260_000}), separators=(",", ":")).encode()
    monkeypatch.setattr("socialpub.web.http.shapes.orjson", Untouched())
    reply = client.send("POST", "/posts/validate", body)
    assert (reply.status, reply.paths()) == (400, [[]])
    assert reply.json()["detail"] == "The body contains more than 100000 arrays and objects."


def test_a_post_has_at_most_100_profiles(client, rt):
    profiles = [add_profile(rt, "x", f"account-{number}") for number in range(101)]
    body = {"post": {"body": "x"}, "profiles": profiles}
    reply = client.send("POST", "/posts", body)
    assert (reply.status, reply.paths()) == (400, [["profiles"]])
    assert reply.json()["detail"] == "profiles may have at most 100 items and has 101."
    reply = client.send("POST", "/posts", {**body, "profiles": profiles[:100]})
    assert len(reply.data["deliveries"]) == 100


def test_a_list_of_the_largest_posts_is_sent_post_by_post(client, rt, monkeypatch):
    profiles = [add_profile(rt, "x", f"account-{number}") for number in range(10)]
    later = {"body": "x", "scheduledAt": stamp(rt.now() + timedelta(hours=1))}
    body = {"post": later, "profiles": profiles, "providerOptions": {"x": options_of(MOST)}}
    posts = [client.send("POST", "/posts", body).data for _ in range(12)]
    monkeypatch.setattr(post_list, "MAX_PAGE_BYTES", 400_000)
    sent: list[int] = []

    async def read(scope: Any, receive: Any, send: Any) -> None:
        async def count(message: Any) -> None:
            sent.append(len(message.get("body", b"")))
            await send(message)

        await client.app(scope, receive, count)

    headers = {"authorization": f"Bearer {client.key}"}
    with Client(read, client.key) as reader:
        whole = reader.ask("GET", "/api/v1/posts?perPage=10&page=0", headers=headers)
    assert whole.status == 200
    assert whole.data == sorted(posts, key=lambda post: str(post["id"]), reverse=True)[:10]
    assert whole.json()["pagination"] == {"page": 0, "perPage": 10, "total": 12}
    assert "content-length" not in whole.headers
    assert len(whole.body) > 1_600_000
    assert max(sent) < 600_000
