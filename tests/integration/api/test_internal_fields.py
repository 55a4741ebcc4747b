"""Requests set no internal fields, and responses show no internal data."""

import json
import re
from typing import Any

import httpx2
import pytest

from socialpub.accounts import api_keys
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from tests.integration.api.client import document
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.select import select_all

OURS = {
    "id": "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01", "status": "settled", "state": "published",
    "createdAt": "2020-01-01T00:00:00Z",
    "providerPostId": "1", "url": "https://evil.example/", "deliveries": [], "keyId": "k", "key_id": "k",
    "scope": "write",
    "storageKey": "../../secret.key", "storage_key": "../../secret.key", "accessToken": "a",
    "__proto__": {"a": 1}, "owner": "me",
    "attempts": [], "runAt": "2020-01-01T00:00:00Z",
}  # fmt: skip
"""Internal fields that a caller may try to set."""
INNER = "http://169.254.169.254/latest/meta-data"


@pytest.fixture
def profile(rt: Runtime) -> str:
    return add_profile(rt)


def test_no_response_has_undocumented_fields():
    shapes = document()["components"]["schemas"]
    answers = {
        found
        for methods in document()["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for found in re.findall(r"schemas/(\w+)", json.dumps(response))
    }
    free = {"providerOptions"}
    seen: set[str] = set()
    while answers - seen:
        name = (answers - seen).pop()
        seen.add(name)
        answers |= set(re.findall(r"schemas/(\w+)", json.dumps(shapes[name])))
        for shape in objects_in(shapes[name], free):
            assert shape.get("additionalProperties") is False, name
            for told in shape["properties"]:
                assert not re.search("token|secret|hash|password|accountId", told, re.IGNORECASE), told
    assert len(seen) > 10


def objects_in(shape: Any, free: set[str]) -> Any:
    if isinstance(shape, dict):
        if "properties" in shape:
            yield shape
        for name, inner in shape.items():
            if name not in free:
                yield from objects_in(inner, free)
    elif isinstance(shape, list):
        for inner in shape:
            yield from objects_in(inner, free)


@pytest.mark.parametrize("name", OURS)
def test_no_body_sets_an_internal_field(client, rt, profile, name):
    whole: dict[str, Any] = {"post": {"body": "x", "scheduledAt": "2031-01-01T12:00:00Z"}, "profiles": [profile]}
    post = client.send("POST", "/posts", whole).data["id"]
    stored = select_all(rt.db, "SELECT * FROM post")
    for method, path, body, at in (
        ("POST", "/posts", {**whole, name: OURS[name]}, [name]),
        ("POST", "/posts", {**whole, "post": {**whole["post"], name: OURS[name]}}, ["post", name]),
        ("PATCH", f"/posts/{post}", {"post": {"body": "y"}, name: OURS[name]}, [name]),
        ("PATCH", f"/posts/{post}", {"post": {"body": "y", name: OURS[name]}}, ["post", name]),
        ("POST", "/uploads", {"fileName": "a", "mimeType": "image/png", "fileSize": 9, name: OURS[name]}, [name]),
    ):
        reply = client.send(method, path, body)
        assert reply.status == 400, (method, path)
        assert reply.paths() == [at]
    assert select_all(rt.db, "SELECT * FROM post") == stored


def test_a_url_of_a_caller_never_leads_into_the_internal_network(client, rt, profile, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr(Http, "call", lambda self, method, url, **more: asked.append(url))
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", lambda self, one: asked.append(str(one.url)))
    draft: dict[str, Any] = {"post": {"body": INNER}, "profiles": [profile]}
    assert client.send("POST", "/posts", draft).status == 201
    for more in (
        {"media": [{"url": INNER}]},
        {"media": [{"artifactId": INNER}]},
        {"webhook": INNER},
        {"callbackUrl": INNER},
        {"providerOptions": {"x": {"quotePostId": INNER}}},
        {"providerOptions": {"x": {"url": INNER}}},
    ):
        client.send("POST", "/posts", {**draft, **more})
        client.send("POST", "/posts/validate", {**draft, **more})
    for url in (INNER, "file:///etc/passwd"):
        upload = {"fileName": "a", "mimeType": "image/png", "fileSize": 9, "url": url}
        assert client.send("POST", "/uploads", upload).status == 400
        assert client.send("POST", "/uploads/import", {"url": url}).status == 400
    drain(rt)
    assert [url for url in asked if "169.254" in url or "file:" in url] == []


def test_no_other_site_may_read_a_response(client, profile):
    for method, path in (
        ("GET", "/profiles"),
        ("POST", "/posts"),
        ("OPTIONS", "/posts"),
        ("GET", "/metrics"),
        ("GET", "/healthz"),
    ):
        for origin in ("https://evil.example", "null", "http://127.0.0.1:8000.evil.example"):
            told = {"origin": origin, "access_control_request_method": "POST"}
            reply = client.send(method, path, **told)
            assert [name for name in reply.headers if name.startswith("access-control-")] == []


def test_a_cookie_does_not_authenticate_at_the_api(client, rt):
    for name in ("key", "authorization", f"socialpub_session_{rt.instance_id[:8]}"):
        assert client.send("GET", "/profiles", key=None, cookie=f"{name}={client.key}").status == 401
    for name in ("key", "access_token", "api_key"):
        assert client.send("GET", f"/profiles?{name}={client.key}", key=None).status == 401
    assert client.send("GET", "/profiles", key=None, x_api_key=client.key).status == 401


def test_public_addresses_show_nothing_about_the_installation(client, rt, profile):
    post = accept(rt, profile, body="a private text")
    key = api_keys.list_all(rt.db)[0]
    for path in ("/openapi-docs", "/healthz", "/readyz", "/metrics", "/problems/not-found"):
        told = client.send("GET", path, key=None).body.decode()
        for hidden in (str(rt.settings.data_dir), profile, post, "a private text", key.id, "acct", "@demo"):
            assert hidden not in told, path
