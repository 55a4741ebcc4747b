"""MCP over HTTP: revisions, failures of the protocol, and refusals of HTTP (contract 10.4.1, 10.4.2)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.accounts import api_keys
from socialpub.core.settings.schema import McpSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.mcp.messages import META_CAPABILITIES, META_REVISION, META_SERVER, REVISIONS
from tests.integration.mcp.agent import CONNECTED, STATELESS, Agent
from tests.support.appliance import open_appliance
from tests.support.hand_clock import HandClock

LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}


@pytest.fixture(scope="module")
def rt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """One appliance for all stories of this file, because no story leaves a row."""
    rt = open_appliance(tmp_path_factory.mktemp("mcp"), HandClock())
    yield rt
    rt.close()


@pytest.fixture(scope="module")
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture(scope="module")
def agent(rt: Runtime, app: App) -> Iterator[Agent]:
    with Agent(app, rt.write(api_keys.create, "agent")) as agent:
        yield agent


def error(reply: Any, status: int = 400) -> Any:
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/json"
    return reply.json()["error"]


# --- revisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", CONNECTED)
def test_a_revision_with_initialize_gets_its_answers(agent, revision):
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    reply = agent.send({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params})
    assert "mcp-session-id" not in reply.headers
    assert reply.json()["id"] == "a"
    result = reply.json()["result"]
    assert (result["protocolVersion"], result["capabilities"]) == (revision, {"tools": {}})
    assert result["serverInfo"]["name"] == "socialpub"
    told = agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_protocol_version=revision)
    assert (told.status, told.body) == (202, b"")
    assert agent.request("ping", revision=revision).json()["result"] == {}
    listed = agent.request("tools/list", revision=revision).json()["result"]
    assert list(listed) == ["tools"]
    assert agent.request("tools/call", {"name": "list_posts"}, revision=revision).json()["result"]["isError"] is False
    assert error(agent.request("server/discover", revision=revision), 200)["code"] == -32601


def test_the_stateless_revision_describes_the_server_in_every_result(agent):
    found = agent.request("server/discover").json()["result"]
    assert found["supportedVersions"] == list(REVISIONS)
    assert found["capabilities"] == {"tools": {}}
    listed = agent.request("tools/list").json()["result"]
    called = agent.request("tools/call", {"name": "list_posts", "arguments": {}}).json()["result"]
    for result in (found, listed, called):
        assert result["resultType"] == "complete"
        assert result["_meta"][META_SERVER]["name"] == "socialpub"
    for result in (found, listed):
        assert (result["ttlMs"], result["cacheScope"]) == (3_600_000, "public")
    for method in ("initialize", "ping", "resources/list"):
        assert error(agent.request(method), 404)["code"] == -32601


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        (LIST, {"mcp_protocol_version": "2024-10-07"}),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"mcp_protocol_version": "1900-01-01"}),
        (
            {**LIST, "params": {"_meta": {META_REVISION: "2099-01-01", META_CAPABILITIES: {}}}},
            {"mcp_protocol_version": "2099-01-01", "mcp_method": "tools/list"},
        ),
    ],
)
def test_another_revision_is_refused_with_the_known_ones(agent, message, headers):
    found = error(agent.send(message, **headers))
    assert found["code"] == -32022
    assert found["data"]["supported"] == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    assert found["data"]["requested"] == headers["mcp_protocol_version"]


@pytest.mark.parametrize("revision", [STATELESS, "2024-10-07", "2099-01-01", "", "'; drop"])
def test_initialize_answers_another_revision_with_the_newest_one(agent, revision):
    reply = agent.send({**LIST, "method": "initialize", "params": {"protocolVersion": revision, "capabilities": {}}})
    assert (reply.status, reply.json()["result"]["protocolVersion"]) == (200, "2025-11-25")
    for wrong in ({}, {"protocolVersion": 1}, {"protocolVersion": None}):
        assert error(agent.send({**LIST, "method": "initialize", "params": wrong}))["code"] == -32602


# --- failures of the protocol ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
        (b"[" * 100_001, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_post",'
            b'"arguments":{"text":"a","profiles":["x"],"text":"b"}}}',
            -32700,
        ),
        (json.dumps([LIST]).encode(), -32600),
        (b"7", -32600),
        (b'{"id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600),
    ],
)
def test_a_message_that_cannot_be_read_is_a_failure_without_an_id(agent, body, code):
    reply = agent.send(body)
    assert error(reply)["code"] == code
    assert reply.json()["id"] is None


@pytest.mark.parametrize(
    ("method", "params", "code", "status"),
    [
        ("prompts/list", {}, -32601, 404),
        ("tools/call", {"name": "disconnect"}, -32602, 400),
        ("tools/call", {"name": "list_posts", "arguments": []}, -32602, 400),
        ("tools/list", {"cursor": "2"}, -32602, 400),
    ],
)
def test_a_request_that_cannot_be_served_is_a_failure_with_its_id(agent, method, params, code, status):
    reply = agent.request(method, params)
    assert (error(reply, status)["code"], reply.json()["id"]) == (code, 7)
    # Earlier revisions have no statuses for failures, and 404 would end their session.
    assert error(agent.request(method, params, revision="2025-11-25"), 200)["code"] == code


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_method": "tools/list"},
        {"mcp_name": "list_profiles"},
        {"mcp_name": "=?base64?bGlzdF9wb3N0=x?="},
    ],
)
def test_headers_that_differ_from_the_body_are_refused(agent, headers):
    assert error(agent.request("tools/call", {"name": "list_posts"}, **headers))["code"] == -32020


def test_a_stateless_request_needs_its_headers_and_its_fields(agent):
    meta = {META_REVISION: STATELESS, META_CAPABILITIES: {}}
    assert error(agent.send({**LIST, "params": {"_meta": meta}}))["code"] == -32020
    fields = {"mcp_protocol_version": STATELESS, "mcp_method": "tools/list"}
    assert agent.send({**LIST, "params": {"_meta": meta}}, **fields).status == 200
    for incomplete in ({}, {META_REVISION: STATELESS}, {META_CAPABILITIES: {}}):
        assert error(agent.send({**LIST, "params": {"_meta": incomplete}}, **fields))["code"] == -32602


NAMES = st.sampled_from(("name", "arguments", "cursor", "_meta", "profiles", "media", "postId", META_REVISION, ""))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(("x", STATELESS, "list_posts", "create_post", "\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(("initialize", "tools/call", "tools/list", "ping")) | VALUES},
    optional={"id": st.integers() | VALUES, "params": VALUES},
)


@given(MESSAGES, st.none() | st.sampled_from((STATELESS, "2025-11-25", "x", "=?base64?!?=")))
def test_every_message_has_a_response_of_the_protocol(agent, message, header):
    names = {} if header is None else dict.fromkeys(("mcp_protocol_version", "mcp_method", "mcp_name"), header)
    reply = agent.send(message, **names)
    assert reply.status in (200, 202, 400, 404)
    if reply.status != 202:
        content = reply.json()
        assert ("result" in content) != ("error" in content)
        assert content.get("result", {}).get("structuredContent", {}).get("code") != "internalError"


# --- refusals of HTTP ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_are_no_streams_and_no_sessions(agent, method):
    reply = agent.ask(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.json()["code"] == "methodNotAllowed"


def test_a_key_is_needed(agent):
    for authorization in ("", "Bearer spk_000000000000_x"):
        reply = agent.send(LIST, authorization=authorization)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert reply.headers["content-type"] == "application/problem+json"
    assert agent.ask("POST", "/mcp", json.dumps(LIST).encode()).status == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 200),
        ("HTTP://127.0.0.1:8000", 200),
        ("http://127.0.0.1", 403),
        ("https://127.0.0.1:8000", 403),
        ("http://attacker.example:8000", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
        ("http://127.0.0.1:99999", 403),
    ],
)
def test_a_page_of_another_site_is_refused(agent, origin, status):
    # The host agrees with the origin after DNS rebinding.
    reply = agent.send(LIST, origin=origin, host=origin.rpartition("/")[2])
    assert reply.status == status
    if status == 403:
        assert reply.json()["code"] == "forbidden"


def test_a_call_counts_once(rt, app):
    with Agent(app, rt.write(api_keys.create, "busy")) as busy:
        for used in (1, 2):
            reply = busy.request("tools/call", {"name": "list_profiles"})
            assert reply.headers["ratelimit-remaining"] == str(600 - used)
        for _ in range(598):
            app.state.rate_limits.keys.count(busy.key.split("_")[1])
        reply = busy.send(LIST)
        assert (reply.status, reply.json()["code"]) == (429, "rateLimited")
        assert reply.headers["retry-after"] == "60"


def test_a_disabled_entry_point_does_not_exist(rt, clock, agent):
    other = open_appliance(rt.settings.data_dir.parent, clock, mcp=McpSection(enabled=False))
    with Agent(create_app(other), agent.key) as refused:
        disabled = refused.send(LIST)
        unknown = refused.ask("POST", "/unknown", headers={"authorization": f"Bearer {agent.key}"})
    assert (disabled.status, disabled.json()) == (404, unknown.json())
    other.close()


# --- descriptions ----------------------------------------------------------------------------------------------------


def test_the_instructions_are_short_and_complete(agent):
    text = agent.request("server/discover").json()["result"]["instructions"]
    assert len(text) <= 800
    for needed in ("public", "cannot be undone", "list_profiles first", "offset", "privacy level", "idempotencyKey"):
        assert needed in text


def test_the_list_of_tools_is_small_and_the_same_for_every_key(agent, reader):
    listed = agent.request("tools/list")
    assert len(listed.body) <= 8000
    assert reader.request("tools/list").json() == listed.json()
