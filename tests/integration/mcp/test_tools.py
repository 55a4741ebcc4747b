"""The tools over MCP: operations of the API, their results, and their refusals (contract 10.4.4, 10.4.5)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from socialpub.accounts import api_keys
from socialpub.core.errors import FieldError
from socialpub.db.queries import api_json
from socialpub.providers.responses import Rejected
from socialpub.publishing.posts import details
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.integration.mcp.agent import Agent
from tests.support.drain import drain
from tests.support.rows import artifact, post_ids, read_post

LATER = "2099-01-01T00:00:00+01:00"

HINTS: dict[str, set[str]] = {
    "list_profiles": {"readOnlyHint"},
    "get_choices": {"readOnlyHint"},
    "check_post": {"readOnlyHint"},
    "get_post": {"readOnlyHint"},
    "list_posts": {"readOnlyHint"},
    "create_post": {"destructiveHint", "openWorldHint"},
    "update_post": {"destructiveHint", "idempotentHint"},
    "cancel_post": {"destructiveHint"},
    "retry_post": {"destructiveHint"},
    "upload_media": set(),
}


def test_the_tools_are_those_of_the_contract(agent):
    tools = agent.request("tools/list").json()["result"]["tools"]
    given = {tool["name"]: {name for name, value in tool["annotations"].items() if value} for tool in tools}
    assert given == HINTS
    for tool in tools:
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object" and tool["inputSchema"]["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool)


# --- publishing ------------------------------------------------------------------------------------------------------


def while_waiting(agent: Agent, app: App, act: Callable[[], object], tool: str, **arguments: Any) -> Any:
    """Call a tool, act as soon as the call waits for the outcome, and return the result."""

    async def story() -> Any:
        call = asyncio.create_task(agent.calling(tool, **arguments))
        while app.state.long_poll._poller is None:
            assert not call.done(), call.result()
            await asyncio.sleep(0)
        act()
        return await call

    return agent.run(story())


def test_a_call_publishes_and_waits_for_the_outcome(agent, app, rt, accounts):
    shown = while_waiting(agent, app, lambda: drain(rt), "create_post", text="Hello", profiles=["X"])
    [post_id] = post_ids(rt)
    assert shown == {"data": read_post(rt, post_id), "summary": ["x: published https://x.example/1"]}
    assert shown["data"]["deliveries"][0]["profileId"] == accounts["acme"]


def test_an_agent_refers_to_accounts_by_name(agent, rt, accounts):
    references = ["@ACMEcorp", "pinterest:shop", accounts["home"]]
    shown = agent.call("create_post", text="Hello", profiles=references, waitSeconds=0)
    assert [one["profileId"] for one in shown["data"]["deliveries"]] == list(accounts.values())
    assert shown["summary"] == ["x: pending", "pinterest Shop: pending", "pinterest Home: pending"]


def test_the_whole_call_takes_at_most_50_seconds(agent, app, accounts, clock, monkeypatch):
    waits: list[float] = []

    async def wait(_post_id: str, seconds: float, _key_id: str) -> None:
        waits.append(seconds)

    monkeypatch.setattr(app.state.long_poll, "until_final", wait)
    agent.call("create_post", text="a", profiles=["x"])
    agent.call("create_post", text="b", profiles=["x"], waitSeconds=50)
    write_soon = Runtime.write_soon

    async def write_slowly(self: Runtime, *args: Any) -> Any:
        clock.forward(12)
        return await write_soon(self, *args)

    monkeypatch.setattr(Runtime, "write_soon", write_slowly)
    agent.call("create_post", text="c", profiles=["x"], waitSeconds=50)
    agent.call("create_post", text="d", profiles=["x"], scheduledAt=LATER)
    assert waits == [20, 50, 38]


def test_a_key_that_ends_during_the_wait_does_not_hide_that_the_post_was_accepted(agent, app, rt, accounts):
    def revoke() -> None:
        rt.write(api_keys.revoke, agent.key.split("_")[1])

    shown = while_waiting(agent, app, revoke, "create_post", text="Hello", profiles=["x"])
    assert (shown["data"]["id"], shown["summary"]) == (post_ids(rt)[0], ["x: pending"])


def test_a_repeated_call_publishes_nothing_new_and_shows_the_outcome(agent, rt, accounts):
    intended = {"text": "Hello", "profiles": ["x"], "idempotencyKey": "one", "waitSeconds": 0}
    first = agent.call("create_post", **intended)
    drain(rt)
    again = agent.call("create_post", **intended)
    assert again["data"]["id"] == first["data"]["id"] and len(post_ids(rt)) == 1
    assert again["summary"] == ["x: published https://x.example/1"]
    other = agent.call("create_post", **{**intended, "text": "Goodbye"})
    assert (other["code"], len(post_ids(rt))) == ("conflict", 1)


def test_a_post_that_a_network_would_refuse_is_not_accepted(agent, rt, accounts, three_networks):
    three_networks["x"].problems = [FieldError(("providerOptions", "x", "replySettings"), "has no such value")]
    checked = agent.call("check_post", text="a", profiles=["x"], idempotencyKey="k", waitSeconds=1)
    assert checked["data"]["valid"] is False
    assert checked["data"]["deliveries"][0]["problems"][0]["path"] == ["options", "x", "replySettings"]
    refused = agent.call("create_post", text="a", profiles=["x"])
    assert refused["errors"] == [{"path": ["options", "x", "replySettings"], "message": "has no such value"}]
    assert refused["detail"].startswith("options.x.replySettings has no such value")
    assert post_ids(rt) == []


@pytest.mark.parametrize("more", [{}, {"scheduledAt": LATER}])
def test_a_post_that_needs_approval_says_so_at_once(app, rt, accounts, more, monkeypatch):
    monkeypatch.setattr(app.state.long_poll, "until_final", pytest.fail)
    with Agent(app, rt.write(api_keys.create, "careful", approval=True)) as careful:
        assert careful.call("list_profiles")["limits"] == {"approval": True}
        shown = careful.call("create_post", text="a", profiles=["x"], **more)
        drain(rt)
        post_id = shown["data"]["id"]
        waits = f"x: waits for the owner's approval: http://127.0.0.1:8000/posts/{post_id}"
        assert shown["summary"] == careful.call("get_post", postId=post_id)["summary"] == [waits]


def test_media_options_and_time_reach_the_post(agent, rt, accounts):
    media = [{"artifactId": artifact(rt), "alt": "A frog"}]
    options = {"x": {"replySettings": "following"}}
    shown = agent.call("create_post", profiles=["x"], media=media, options=options, scheduledAt=LATER)
    post = shown["data"]
    assert (post["media"][0]["alt"], post["deliveries"][0]["providerOptions"]) == ("A frog", options["x"])
    assert shown["summary"] == ["x: scheduled for 2098-12-31T23:00:00.000Z"]
    changed = agent.call("update_post", postId=post["id"], text="New", media=[], options={}, scheduledAt=None)
    assert (changed["data"]["body"], changed["data"]["media"], changed["summary"]) == ("New", [], ["x: pending"])
    assert "scheduledAt" not in changed["data"]


def test_a_post_is_changed_canceled_and_listed(agent, rt, accounts):
    post_id = agent.call("create_post", text="a", profiles=["x"], scheduledAt=LATER)["data"]["id"]
    other_id = agent.call("create_post", text="b", profiles=["x"], waitSeconds=0)["data"]["id"]
    assert agent.call("update_post", postId=post_id, text="c")["data"]["scheduledAt"].startswith("2098-12-31")
    assert agent.call("cancel_post", postId=post_id)["summary"] == ["x: canceled"]
    listed = agent.call("list_posts")
    assert [(one["id"], one["summary"]) for one in listed["data"]] == [
        (other_id, ["x: pending"]),
        (post_id, ["x: canceled"]),
    ]
    assert [one["id"] for one in agent.call("list_posts", status="canceled", limit=1)["data"]] == [post_id]
    assert [one["id"] for one in agent.call("list_posts", deliveryStatus="pending")["data"]] == [other_id]
    assert agent.call("cancel_post", postId=post_id)["code"] == "conflict"


def test_a_failed_post_is_retried(agent, rt, accounts, three_networks):
    three_networks["x"].results["create_post"] = [Rejected("It is a duplicate.")]
    failed = agent.call("create_post", text="a", profiles=["x"], waitSeconds=0)["data"]["id"]
    drain(rt)
    shown = agent.call("get_post", postId=failed)
    assert shown["data"] == read_post(rt, failed)
    assert shown["attempts"] == json.loads(details.load_attempts(rt, rt.db, failed))
    assert shown["attempts"][0]["outcome"] == "refused"
    assert shown["summary"][0].startswith("x: failed: ") and "It is a duplicate" in shown["summary"][0]
    retried = agent.call("retry_post", postId=failed, includeUnknown=True)
    assert retried["data"]["id"] != failed and retried["summary"] == ["x: pending"]
    assert agent.call("retry_post", postId=failed)["code"] == "conflict"


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "path", "message"),
    [
        ("create_post", {"text": "a"}, ["profiles"], "is required"),
        ("create_post", {"profiles": ["x"]}, ["text"], "is required when there is no media"),
        ("create_post", {"text": "a", "profiles": ["pinterest"]}, ["profiles", 0], "names 2 accounts"),
        ("create_post", {"text": "a", "profiles": ["x", "y"]}, ["profiles", 1], "names no account"),
        ("create_post", {"text": "a", "profiles": ["x", "@AcmeCorp"]}, ["profiles", 1], "is listed twice"),
        ("create_post", {"text": "a", "profiles": ["x"], "scheduledAt": "tomorrow"}, ["scheduledAt"], "offset"),
        (
            "create_post",
            {"text": "a", "profiles": ["x"], "publishAt": LATER},
            ["publishAt"],
            "did you mean scheduledAt?",
        ),
        ("create_post", {"body": "a", "profiles": ["x"]}, ["body"], "did you mean text?"),
        ("create_post", {"text": "a", "profiles": ["x"], "waitSeconds": 51}, ["waitSeconds"], "at most 50"),
        ("create_post", {"text": "a", "profiles": ["x"], "idempotencyKey": "ä"}, ["idempotencyKey"], "printable"),
        (
            "create_post",
            {"text": "a", "profiles": ["x"], "options": {"tiktok": {}}},
            ["options", "tiktok"],
            "selected profile",
        ),
        ("update_post", {"postId": "1", "text": "a"}, ["postId"], "must be a UUID"),
        ("list_posts", {"limit": 21}, ["limit"], "at most 20"),
        ("list_profiles", {"all": True}, ["all"], "is not known"),
    ],
)
def test_a_refusal_names_the_argument_and_accepts_nothing(
    agent,
    rt,
    accounts,
    tool,
    arguments,
    path,
    message,
):
    problem = agent.call(tool, **arguments)
    assert (problem["status"], problem["code"]) == (400, "invalidRequest")
    [found] = problem["errors"]
    assert found["path"] == path and message in found["message"]
    assert problem["detail"].startswith(str(path[0])), problem["detail"]
    assert post_ids(rt) == []


def test_a_read_key_reads_and_changes_nothing(agent, reader, rt, accounts):
    post_id = agent.call("create_post", text="a", profiles=["x"], scheduledAt=LATER)["data"]["id"]
    assert reader.call("get_post", postId=post_id)["data"]["id"] == post_id
    assert reader.call("list_posts")["data"][0]["id"] == post_id
    assert reader.call("list_profiles")["data"]
    assert reader.call("check_post", text="a", profiles=["x"])["data"]["valid"] is True
    tools = agent.request("tools/list").json()["result"]["tools"]
    for tool in [tool for tool in tools if "readOnlyHint" not in tool["annotations"]]:
        # The scope is checked before the arguments.
        assert reader.call(tool["name"])["code"] == "forbidden"
    assert post_ids(rt) == [post_id] and read_post(rt, post_id)["status"] == "scheduled"


@pytest.mark.parametrize("tool", ["create_post", "update_post", "cancel_post", "retry_post"])
def test_a_key_that_is_revoked_during_a_call_changes_nothing(agent, rt, accounts, tool):
    post_id = agent.call("create_post", text="a", profiles=["x"], scheduledAt=LATER)["data"]["id"]
    before, write_soon = read_post(rt, post_id), rt.db.write_soon

    def revoke_first(*arguments: Any) -> Any:
        rt.write(api_keys.revoke, agent.key.split("_")[1])
        return write_soon(*arguments)

    rt.db.write_soon = revoke_first  # type: ignore[method-assign]
    given = {"profiles": ["x"], "text": "b"} if tool == "create_post" else {"postId": post_id}
    problem = agent.call(tool, **given, **({"text": "b"} if tool == "update_post" else {}))
    assert (problem["code"], post_ids(rt), read_post(rt, post_id)) == ("unauthorized", [post_id], before)


def test_a_limited_key_reaches_only_its_accounts(agent, app, rt, accounts):
    foreign = agent.call("create_post", text="a", profiles=["shop"], waitSeconds=0)["data"]["id"]
    with Agent(app, rt.write(api_keys.create, "limited", providers=["x"])) as limited:
        assert [one["name"] for one in limited.call("list_profiles")["data"]] == ["Acme"]
        refused = limited.call("create_post", text="a", profiles=[accounts["shop"]])
        assert refused["errors"][0]["path"] == ["profiles", 0] and "Shop" not in json.dumps(refused)
        assert limited.call("get_post", postId=foreign)["code"] == "notFound"
        assert limited.call("list_posts")["data"] == []


def test_an_unexpected_failure_is_a_problem_without_its_cause(agent, monkeypatch, caplog):
    caplog.set_level("INFO", "socialpub")

    def fail(*_: object) -> None:
        raise RuntimeError("a detail of the database")

    monkeypatch.setattr(api_json, "profiles", fail)
    problem = agent.call("list_profiles")
    assert (problem["status"], problem["code"]) == (500, "internalError")
    assert "a detail" not in json.dumps(problem) and "a detail" in caplog.text
    (call,) = (record for record in caplog.records if record.name == "socialpub.web.mcp.tools")
    expected = {"tool": "list_profiles", "key": agent.key.split("_")[1], "code": "internalError"}
    assert vars(call)["fields"] == expected


def test_no_result_contains_a_secret(agent, rt, accounts):
    post_id = agent.call("create_post", text="a", profiles=["x"], waitSeconds=0)["data"]["id"]
    drain(rt)
    shown = [agent.call("list_profiles"), agent.call("list_posts"), agent.call("get_post", postId=post_id)]
    text = json.dumps([shown, agent.request("server/discover").json()])
    for secret in ("access-0", "refresh-0", agent.key, agent.key.split("_", 2)[2]):
        assert secret not in text
