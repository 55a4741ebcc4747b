"""Keys: what they open, until when, and what of the appliance they show (contract section 2)."""

import logging
from datetime import timedelta

import pytest

from socialpub.accounts import api_keys
from socialpub.core.errors import OperatorError
from socialpub.runtime import Runtime
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile
from tests.support.hand_clock import HandClock


def test_a_key_is_shown_once_and_only_its_digest_is_kept(rt: Runtime) -> None:
    key = rt.write(api_keys.create, "n8n")
    prefix, key_id, secret = key.split("_", 2)
    assert prefix == "spk"
    assert len(secret) == 43  # 256 bits
    row = rt.reader.one("SELECT * FROM api_key")
    assert row is not None
    assert row["id"] == key_id
    assert secret not in repr(tuple(row))
    assert len(row["secret_hash"]) == 32


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic abc",
        "{key}",
        "Bearer {key}x",
        "Bearer spk_{id}_",
        "Bearer spk_{id}_é",
    ],
)
def test_what_is_no_key_is_unauthorized(client: Client, header: str) -> None:
    header = header.replace("{key}", client.key).replace("{id}", client.key.split("_")[1])
    reply = client.send("GET", "/posts", key=None, authorization=header)
    assert (reply.status, reply.json()["code"]) == (401, "unauthorized")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_the_scheme_is_not_case_sensitive(client: Client) -> None:
    assert client.send("GET", "/posts", key=None, authorization=f"bearer {client.key}").status == 200


def test_a_read_key_reads_and_validates_and_changes_nothing(client: Client, rt: Runtime, profile: str) -> None:
    key = rt.write(api_keys.create, "reader", "read")
    post_id = accept(rt, profile)
    draft = {"post": {"body": "x"}, "profiles": [profile]}
    for path in (
        "/posts",
        f"/posts/{post_id}",
        f"/posts/{post_id}/attempts",
        "/profiles",
        f"/profiles/{profile}",
        "/publish/logs",
    ):
        assert client.send("GET", path, key=key).status == 200
    assert client.send("POST", "/posts/validate", draft, key=key).status == 200
    for method, path, body in (
        ("POST", "/posts", draft),
        ("PATCH", f"/posts/{post_id}", {"post": {"body": "y"}}),
        ("POST", f"/posts/{post_id}/cancel", None),
        ("POST", f"/profiles/{profile}/disconnect", None),
        ("POST", "/uploads", {"fileName": "a.png", "mimeType": "image/png", "fileSize": 1}),
        ("POST", "/uploads/complete", {"artifactId": post_id}),
    ):
        reply = client.send(method, path, body, key=key)
        assert (reply.status, reply.json()["code"]) == (403, "forbidden")


def test_a_revoked_key_is_refused_at_once(client: Client, rt: Runtime) -> None:
    key = rt.write(api_keys.create, "short-lived")
    assert client.send("GET", "/posts", key=key).status == 200
    rt.write(api_keys.revoke, key.split("_")[1])
    assert client.send("GET", "/posts", key=key).status == 401
    rt.write(api_keys.revoke, key.split("_")[1])
    with pytest.raises(OperatorError, match="no key"):
        rt.write(api_keys.revoke, "nobody")


def test_a_key_ends_at_its_time(client: Client, rt: Runtime, clock: HandClock) -> None:
    key = rt.write(api_keys.create, "guest", "read", None, None, rt.now() + timedelta(days=90))
    clock.forward(90 * 86400 - 1)
    assert client.send("GET", "/posts", key=key).status == 200
    clock.forward(1)
    assert client.send("GET", "/posts", key=key).status == 401


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("",), "needs a name"),
        (("a\nb",), "needs a name"),
        (("a", "admin"), "no scope"),
        (("a", "read", ["facebook"]), "no provider"),
        (("a", "read", None, ["nonsense"]), "no profile"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(rt: Runtime, arguments: tuple[object, ...], told: str) -> None:
    with pytest.raises(OperatorError, match=told):
        rt.write(api_keys.create, *arguments)  # type: ignore[arg-type]
    assert api_keys.list_all(rt.reader) == []


def test_last_use_is_written_down_later_and_once(client: Client, rt: Runtime, clock: HandClock) -> None:
    client.send("GET", "/posts")
    clock.forward(5)
    client.send("GET", "/posts")
    assert api_keys.list_all(rt.reader)[0].last_used_at is None
    client.run(client.app.close())
    assert api_keys.list_all(rt.reader)[0].last_used_at == "2026-10-12T09:00:05.000Z"


# --- limited keys ----------------------------------------------------------------------------------------------------


def test_a_limited_key_sees_only_what_is_wholly_in_its_scope(client: Client, rt: Runtime) -> None:
    mine, theirs = add_profile(rt, "x", "a"), add_profile(rt, "tiktok", "b")
    key = rt.write(api_keys.create, "x only", "write", ["x"])
    seen, shared, hidden = accept(rt, mine), accept(rt, mine, theirs), accept(rt, theirs)

    assert [one["id"] for one in client.send("GET", "/profiles", key=key).data] == [mine]
    assert client.send("GET", f"/profiles/{theirs}", key=key).status == 404
    assert client.send("POST", f"/profiles/{theirs}/disconnect", key=key).status == 404
    listed = client.send("GET", "/posts", key=key).json()
    assert [one["id"] for one in listed["data"]] == [seen]
    assert listed["pagination"]["total"] == 1
    assert client.send("GET", f"/posts/{seen}", key=key).status == 200
    for post_id in (shared, hidden):
        for method, path in (("GET", ""), ("GET", "?wait=1"), ("GET", "/attempts"), ("POST", "/cancel")):
            assert client.send(method, f"/posts/{post_id}{path}", key=key).status == 404
        assert client.send("PATCH", f"/posts/{post_id}", {"post": {"body": "x"}}, key=key).status == 404
    # A log entry is seen when its own delivery is in scope.
    logs = client.send("GET", "/publish/logs", key=key).data
    assert [one["postId"] for one in logs] == [shared, seen]
    assert len(client.send("GET", "/publish/logs").data) == 4


def test_an_unknown_profile_and_one_out_of_scope_cannot_be_told_apart(client: Client, rt: Runtime) -> None:
    mine, theirs = add_profile(rt, "x", "a"), add_profile(rt, "x", "b")
    key = rt.write(api_keys.create, "one", "write", None, [mine])
    unknown = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"
    replies = [
        client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [mine, other]}, key=key).json()
        for other in (theirs, unknown)
    ]
    assert replies[0] == replies[1]
    assert replies[0]["errors"][0]["path"] == ["profiles", 1]
    assert client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [mine]}, key=key).status == 201


def test_with_both_limits_both_must_hold(client: Client, rt: Runtime) -> None:
    x, tiktok = add_profile(rt, "x", "a"), add_profile(rt, "tiktok", "b")
    key = rt.write(api_keys.create, "both", "read", ["x"], [x, tiktok])
    assert [one["id"] for one in client.send("GET", "/profiles", key=key).data] == [x]


def test_no_log_line_holds_a_key_or_a_query(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "socialpub"):
        client.send("GET", "/posts?page=7", x_request_id="trace-me")
        client.send("POST", "/posts", {"post": {}})
    lines = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    assert [line["status"] for line in lines] == [200, 400]
    assert lines[0]["request_id"] == "trace-me"
    assert lines[0]["path"] == "/api/v1/posts"
    assert lines[0]["key"] == client.key.split("_")[1]
    assert client.key.split("_", 2)[2] not in repr(lines)
