"""Access to every address, derived from the document and the routes."""

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from socialpub.accounts import api_keys, sign_in
from socialpub.core.errors import OperatorError
from socialpub.core.settings.schema import DashboardSection, McpSection
from socialpub.runtime import Runtime
from socialpub.web.routes import DASHBOARD, all_routes, flatten
from tests.integration.api.client import document
from tests.integration.uploads.caller import Caller
from tests.support.appliance import accept, add_profile
from tests.support.select import select_all, select_one

UNKNOWN = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
LABELS = [f"{method} {path}" for method, path, _ in OPERATIONS]
OPEN_TO_ALL = {
    "/api/v1/openapi-docs",
    "/healthz",
    "/readyz",
    "/metrics",  # unless it has a token
    "/problems/{slug}",
    "/manual",
    "/manual/{topic}",
    "/manual/images/{name}",
    "/oauth/{provider}/callback",  # needs a valid state
    "/storage/uploads/{artifactId}",  # by signature
    "/storage/media/{key}",  # by signature
    "/tiktok{name}.txt",  # TikTok reads its own file from the data folder
    "/storage/media/tiktok{name}.txt",
    "/",
    "/login",
    "/setup",  # needs a valid token
}
"""Every address without a key or a session."""
KEYED = {"/mcp"}
"""Addresses that need a key and are not in the document: `integration/mcp/test_protocol.py`."""


def body_for(method: str, path: str, profile: str) -> bytes:
    if method not in ("POST", "PATCH"):
        return b""
    whole = {"post": {"body": "x"}, "profiles": [profile]}
    bodies: dict[str, Any] = {
        "/api/v1/posts": whole,
        "/api/v1/posts/validate": whole,
        "/api/v1/posts/{postId}": {"post": {"body": "changed by a stranger"}},
        "/api/v1/uploads": {"fileName": "a.png", "mimeType": "image/png", "fileSize": 10},
        "/api/v1/uploads/complete": {"artifactId": UNKNOWN},
    }
    return json.dumps(bodies.get(path, {})).encode()


def filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], ids["id"]), path)


def ask(client: Caller, method: str, url: str, body: bytes, key: str | None) -> Any:
    told = {"content-type": "application/json"} if body else {}
    return client.ask(method, url, body, told | ({"authorization": f"Bearer {key}"} if key else {}))


def rows(rt: Runtime) -> dict[str, list[Any]]:
    return {
        table: select_all(rt.db, f"SELECT * FROM {table} ORDER BY 1")
        for table in ("post", "delivery", "profile", "artifact", "idempotency", "log_entry", "api_key")
    }


@pytest.fixture
def known(rt: Runtime) -> Iterator[dict[str, str]]:
    """A profile and a scheduled post that other keys own."""
    profile = add_profile(rt, "tiktok", "theirs")
    post = accept(rt, profile, body="theirs", at=datetime(2031, 1, 1, 12, tzinfo=UTC))
    yield {"postId": post, "id": profile}


WITH_IDS = [one for one in OPERATIONS if "{" in one[1]]


@pytest.mark.parametrize(("method", "path", "operation"), WITH_IDS, ids=[f"{m} {p}" for m, p, _ in WITH_IDS])
def test_resources_out_of_scope_look_like_missing_resources(client, rt, known, method, path, operation):
    mine = add_profile(rt, "x", "mine")
    key = rt.write(api_keys.create, "mine alone", "write", None, [mine])
    url, unknown = filled(path, known), filled(path, dict.fromkeys(known, UNKNOWN))
    before = rows(rt)
    for query in ("", "?wait=1") if path.endswith("{postId}") and method == "GET" else ("",):
        body = body_for(method, path, mine)
        theirs, missing = (ask(client, method, one + query, body, key) for one in (url, unknown))
        assert theirs.status == 404
        shown = [
            {name: value for name, value in reply.json().items() if name not in ("requestId", "instance")}
            for reply in (theirs, missing)
        ]
        assert shown[0] == shown[1], "both responses are equal"
    assert rows(rt) == before
    assert ask(client, method, url, body_for(method, path, mine), client.key).status != 404, "whose it is, finds it"


def test_no_list_or_filter_shows_resources_out_of_scope(client, rt, known):
    mine = add_profile(rt, "x", "mine")
    key = rt.write(api_keys.create, "mine alone", "read", None, [mine])
    for path in ("/posts", f"/posts?profileIds={known['id']}", "/posts?providers=tiktok", "/posts?status=scheduled",
                 "/profiles", "/publish/logs"):  # fmt: skip
        shown = client.send("GET", path, key=key)
        assert known["id"].encode() not in shown.body, path
        assert known["postId"].encode() not in shown.body, path
        assert b"theirs" not in shown.body, path
    reply = client.send("GET", f"/posts?profileIds={known['id']}", key=key)
    assert reply.status in (200, 400)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=LABELS)
def test_a_read_key_changes_nothing_at_any_address(client, rt, known, method, path, operation):
    key = rt.write(api_keys.create, "reader", "read")
    url = filled(path, known)
    before = rows(rt)
    reply = ask(client, method, url, body_for(method, path, known["id"]), key)
    reads = method == "GET" or path.endswith("/validate")
    assert (reply.status < 300) if reads else (reply.status == 403)
    assert rows(rt) == before


NEEDS_A_FILE = ("/api/v1/uploads/complete", "/api/v1/uploads/import")
"""Their stories are in `integration/uploads`."""
WRITES = [(m, p) for m, p, _ in OPERATIONS if m != "GET" and not p.endswith("/validate") and p not in NEEDS_A_FILE]
CHANGES = {
    "revoked_at = '2026-01-01T00:00:00.000Z'": 401,
    "expires_at = created_at": 401,
    "scope = 'read'": 403,
    "posts_per_day = 1": 403,
    "approval = 1": 403,
    "providers = '[\"x\"]'": 403,
    "profiles = '[]'": 403,
    "last_used_at = created_at, name = 'another name'": 0,
}
"""Changes of a key, and the status of its running request. 0: the change is none of the request's business."""


@pytest.mark.parametrize(("method", "path"), WRITES, ids=[f"{method} {path}" for method, path in WRITES])
def test_a_running_request_writes_nothing_after_its_key_has_changed(client, rt, known, method, path):
    write_soon, before = rt.db.write_soon, {**rows(rt), "api_key": []}
    for (change, status), announced in product(CHANGES.items(), (False, True)):
        key, writes = rt.write(api_keys.create, change), list[Any]()

        def change_first(*arguments: Any, key: str = key, change: str = change, writes: list[Any] = writes) -> Any:
            writes.append(arguments)
            if len(writes) == 1:
                key_id = key.split("_")[1]
                rt.db.write(lambda tx: tx.execute_sql(f"UPDATE api_key SET {change} WHERE id = ?", (key_id,)))
            return write_soon(*arguments)

        rt.db.write_soon = change_first  # type: ignore[method-assign]
        told = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        told |= {"idempotency-key": "once"} if announced else {}
        reply = client.ask(method, filled(path, known), body_for(method, path, known["id"]), told)
        assert writes
        if status == 0:
            assert reply.status not in (401, 403)
            return
        assert (reply.status, {**rows(rt), "api_key": []}) == (status, before), change
        assert reply.status == 403 or reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=LABELS)
def test_every_documented_operation_needs_a_valid_key(client, known, method, path, operation):
    url = filled(path, known)
    guarded = operation.get("security") != []
    assert guarded == (path not in OPEN_TO_ALL)
    for key in (None, "spk_0000000000_" + "x" * 43, "null", "' OR 1=1 --"):
        reply = ask(client, method, url, body_for(method, path, known["id"]), key)
        assert reply.status == 401 if guarded else reply.status < 400


def test_every_address_needs_a_key_or_is_listed_as_open(rt):
    sections = {"dashboard": DashboardSection(enabled=False), "mcp": McpSection(enabled=True)}
    addresses = {path for path, _ in flatten(all_routes(rt.settings.model_copy(update=sections)))}
    documented = {
        path for path, methods in document()["paths"].items() for one in methods.values() if one.get("security") != []
    }
    assert addresses - documented - KEYED <= OPEN_TO_ALL
    assert not documented & OPEN_TO_ALL


PAGES = sorted({route.path for route in DASHBOARD} - OPEN_TO_ALL)


@pytest.mark.parametrize("path", PAGES)
def test_no_key_opens_a_page_of_the_dashboard(client, rt, known, path):
    methods = {method for one in DASHBOARD if one.path == path for method in one.methods or () if method != "HEAD"}
    url = filled(path, known)
    rt.write(sign_in.set_password, "a hash")
    before = rows(rt)
    assert methods
    for method in methods:
        for cookie in ({}, {"cookie": f"socialpub_session_{rt.instance_id[:8]}={client.key}"}):
            told = {"authorization": f"Bearer {client.key}", "accept": "text/html", "host": "127.0.0.1:8000", **cookie}
            told |= {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8000"}
            reply = client.ask(method, url, b"csrf=x&name=stolen&scope=write" if method == "POST" else b"", told)
            assert reply.status in (303, 401, 403, 404, 415), (method, reply.status)
            assert reply.status != 303 or "/login" in reply.headers["location"]
    assert rows(rt) == before
    assert len(api_keys.list_all(rt.db)) == 1


# --- Keys: what they open, until when, and what of the appliance they show (contract section 2) -----------------------


def test_a_key_is_shown_once_and_only_its_digest_is_kept(rt):
    key = rt.write(api_keys.create, "n8n")
    prefix, key_id, secret = key.split("_", 2)
    assert prefix == "spk"
    assert len(secret) == 43  # 256 bits
    row = select_one(rt.db, "SELECT * FROM api_key")
    assert row is not None
    assert row["id"] == key_id
    assert secret not in repr(tuple(row))
    assert len(row["secret_hash"]) == 32


def test_a_revoked_key_is_refused_at_once(client, rt):
    key = rt.write(api_keys.create, "short-lived")
    assert client.send("GET", "/posts", key=key).status == 200
    rt.write(api_keys.revoke, key.split("_")[1])
    assert client.send("GET", "/posts", key=key).status == 401
    rt.write(api_keys.revoke, key.split("_")[1])
    with pytest.raises(OperatorError, match="no key"):
        rt.write(api_keys.revoke, "unknown")


def test_a_key_ends_at_its_time(client, rt, clock):
    key = rt.write(api_keys.create, "guest", "read", None, None, rt.now() + timedelta(days=90))
    clock.forward(90 * 86400 - 1)
    assert client.send("GET", "/posts", key=key).status == 200
    clock.forward(1)
    assert client.send("GET", "/posts", key=key).status == 401


def test_the_last_use_is_written_later_and_once(client, rt, clock):
    client.send("GET", "/posts")
    clock.forward(5)
    client.send("GET", "/posts")
    assert api_keys.list_all(rt.db)[0].last_used_at is None
    client.run(client.app.close())
    assert api_keys.list_all(rt.db)[0].last_used_at == "2026-10-12T09:00:05.000Z"


# --- limited keys ----------------------------------------------------------------------------------------------------


def test_a_limited_key_sees_only_posts_completely_in_its_scope(client, rt):
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
    # A log entry is visible if its own delivery is in scope.
    logs = client.send("GET", "/publish/logs", key=key).data
    assert [one["postId"] for one in logs] == [shared, seen]
    assert len(client.send("GET", "/publish/logs").data) == 4


def test_an_unknown_profile_and_a_profile_out_of_scope_get_the_same_error(client, rt):
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


def test_with_both_limits_both_must_hold(client, rt):
    x, tiktok = add_profile(rt, "x", "a"), add_profile(rt, "tiktok", "b")
    key = rt.write(api_keys.create, "both", "read", ["x"], [x, tiktok])
    assert [one["id"] for one in client.send("GET", "/profiles", key=key).data] == [x]


def test_no_log_line_holds_a_key_or_a_query(client, caplog):
    with caplog.at_level(logging.DEBUG, "socialpub"):
        client.send("GET", "/posts?page=7", x_request_id="trace-me")
        client.send("POST", "/posts", {"post": {}})
    lines = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    assert [line["status"] for line in lines] == [200, 400]
    assert lines[0]["request_id"] == "trace-me"
    assert lines[0]["path"] == "/api/v1/posts"
    assert lines[0]["key"] == client.key.split("_")[1]
    assert client.key.split("_", 2)[2] not in repr(lines)
