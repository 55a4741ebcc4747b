"""A network beyond the specification: only keys that name it see it (contract 11.1, 11.2)."""

import json
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import KeyRefused
from socialpub.core.settings.networks import BlueskySection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.providers.options import Option, OptionType
from socialpub.providers.registry import OPTIONS
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.openapi.operations import EXAMPLES
from tests.integration.api.client import Client
from tests.integration.mcp.agent import Agent
from tests.integration.uploads.caller import Reply
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork

UNSEEN = [None, ["x"], ["x", "tiktok", "pinterest"]]
"""The providers of keys that do not see Bluesky."""
SEEN = [["bluesky"], ["all"], ["x", "bluesky"]]
REFUSED_LIST = "must be a comma-separated list of x, tiktok, pinterest"
REFUSED_OPTIONS = "is not known; known names are x, tiktok, pinterest"


class Extension(ScriptedNetwork):
    name, label = "bluesky", "Bluesky"


TABLE = (
    Option("languages", OptionType.CHOICES, "The languages of the text: `en` or `de`.", values=("en", "de")),
    Option("replyToPostId", OptionType.POST, "The id of our own post to reply to.", sent_as="replyTo"),
)


@pytest.fixture(autouse=True)
def options_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stories are about any network beyond the specification."""
    monkeypatch.setitem(OPTIONS, "bluesky", TABLE)
    monkeypatch.setitem(EXAMPLES["options"], "bluesky", {"languages": ["en"]})


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork]) -> dict[str, Any]:
    enabled = ProvidersSection(bluesky=BlueskySection(enabled=True))
    return {"networks": enabled, "providers": {**three_networks, "bluesky": Extension()}}


def key_for(rt: Runtime, providers: list[str] | None, scope: str = "write") -> str:
    return rt.write(api_keys.create, "a key", scope, providers)


def ask(client: Client, key: str, path: str, method: str = "GET", body: Any = None) -> Reply:
    """Without the check against the specification's document, which does not describe Bluesky."""
    fields = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return client.ask(method, f"/api/v1{path}", b"" if body is None else json.dumps(body).encode(), fields)


@pytest.fixture
def accounts(rt: Runtime) -> dict[str, str]:
    return {"x": add_profile(rt), "bluesky": add_profile(rt, "bluesky", "did:plc:one", name="Sky")}


@pytest.mark.parametrize("providers", UNSEEN, ids=str)
def test_a_key_that_does_not_name_the_network_finds_no_trace_of_it(client, rt, clock, accounts, providers):
    with_both = accept(rt, *accounts.values(), body="To both")
    alone = accept(rt, accounts["bluesky"], body="To the sky")
    to_x = accept(rt, accounts["x"], body="To X")
    drain(rt, clock)
    key = key_for(rt, providers)
    for path in (
        "/profiles",
        "/posts",
        "/publish/logs",
        "/publish/logs?after=start",
        "/posts?deliveryStatus=published",
    ):
        shown = client.send("GET", path, key=key)
        assert shown.status == 200
        assert b"bluesky" not in shown.body, path
        assert b"Sky" not in shown.body, path
    assert [one["id"] for one in client.send("GET", "/posts", key=key).data] == [to_x]
    of_posts = [f"/posts/{post}{more}" for post in (with_both, alone) for more in ("", "?wait=1", "/attempts")]
    for path in (*of_posts, *(f"/profiles/{accounts['bluesky']}{more}" for more in ("", "/choices"))):
        assert client.send("GET", path, key=key).status == 404, path
    refused = client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [accounts["bluesky"]]}, key=key)
    unknown = client.send("POST", "/posts", {"post": {"body": "x"}, "profiles": [with_both]}, key=key)
    assert refused.status == unknown.status == 400
    assert refused.json()["errors"] == unknown.json()["errors"]
    shown = client.send("GET", f"/posts?profileIds={accounts['bluesky']}", key=key)
    assert (shown.status, shown.data) == (200, [])


@pytest.mark.parametrize("providers", SEEN, ids=str)
def test_a_key_that_names_the_network_publishes_there(client, rt, clock, accounts, providers):
    key = key_for(rt, providers)
    assert accounts["bluesky"] in {one["id"] for one in ask(client, key, "/profiles").data}
    body = {
        "post": {"body": "To the sky"},
        "profiles": [accounts["bluesky"]],
        "providerOptions": {"bluesky": {"languages": ["en"]}},
    }
    assert ask(client, key, "/posts/validate", "POST", body).data["valid"]
    post = ask(client, key, "/posts", "POST", body)
    assert post.status == 201, post.body
    drain(rt, clock)
    (delivery,) = ask(client, key, f"/posts/{post.data['id']}").data["deliveries"]
    assert (delivery["provider"], delivery["status"]) == ("bluesky", "published")
    assert delivery["providerOptions"] == {"languages": ["en"]}
    found = ask(client, key, "/posts?providers=bluesky").data
    assert [one["id"] for one in found] == [post.data["id"]]
    assert "bluesky" in {one["provider"] for one in ask(client, key, "/publish/logs").data}


def test_only_a_key_for_all_networks_sees_posts_to_two_of_them(client, rt, accounts):
    post = accept(rt, *accounts.values())
    seen = {str(one): ask(client, key_for(rt, one), f"/posts/{post}").status for one in (None, ["bluesky"], *SEEN)}
    assert seen == {"None": 404, "['bluesky']": 404, "['all']": 200, "['x', 'bluesky']": 200}


@pytest.mark.parametrize("providers", UNSEEN, ids=str)
def test_its_name_is_as_unknown_as_any_other(client, rt, providers):
    key = key_for(rt, providers)
    refused = client.send("GET", "/posts?providers=bluesky", key=key)
    assert refused.json()["errors"] == [{"path": ["providers"], "message": REFUSED_LIST}]
    assert client.send("GET", "/posts?providers=x,bluesky", key=key).json()["errors"] == refused.json()["errors"]
    body = {"post": {"body": "x"}, "profiles": [add_profile(rt)], "providerOptions": {"bluesky": {}}}
    for method, path in (("POST", "/posts"), ("POST", "/posts/validate")):
        refused = client.send(method, path, body, key=key)
        assert refused.status == 400
        assert refused.json()["errors"] == [{"path": ["providerOptions", "bluesky"], "message": REFUSED_OPTIONS}]


def test_a_key_for_the_network_gets_messages_that_name_it(client, rt):
    key = key_for(rt, ["bluesky"])
    (error,) = ask(client, key, "/posts?providers=blusky").json()["errors"]
    assert error["message"] == f"{REFUSED_LIST}, bluesky"
    body = {"post": {"body": "x"}, "profiles": [], "providerOptions": {"blusky": {}}}
    errors = ask(client, key, "/posts", "POST", body).json()["errors"]
    assert {"path": ["providerOptions", "blusky"], "message": "is not known; did you mean bluesky?"} in errors


def test_a_key_without_providers_is_unlimited_only_without_such_a_network(rt):
    key = key_for(rt, None)
    caller = api_keys.authenticate(rt, key)
    assert caller is not None
    assert caller.providers == {"x", "tiktok", "pinterest"}
    del rt.providers["bluesky"]
    caller = api_keys.authenticate(rt, key)
    assert caller is not None
    assert not caller.limited, "lists stay as fast as they were"


def test_a_key_for_all_networks_is_unlimited_and_includes_later_networks(rt):
    later = rt.providers.pop("bluesky")
    caller = api_keys.authenticate(rt, key := key_for(rt, ["all", "x"]))
    assert caller is not None
    assert not caller.limited
    rt.providers["bluesky"] = later
    caller = api_keys.authenticate(rt, key)
    assert caller is not None
    assert caller.covers("bluesky")


def test_a_key_for_one_account_of_the_network_must_name_the_network(rt, accounts):
    mine = accounts["bluesky"]
    with pytest.raises(KeyRefused) as refused:
        rt.write(api_keys.create, "one", "write", None, [mine])
    assert refused.value.field == "profiles"
    assert refused.value.message == "A key sees “Sky” only if the key names Bluesky."
    caller = api_keys.authenticate(rt, rt.write(api_keys.create, "one", "write", ["bluesky"], [mine]))
    assert caller is not None
    assert caller.sees("bluesky", mine)
    assert not caller.sees("x", accounts["x"])


# --- the document ----------------------------------------------------------------------------------------------------


def document_for(client: Client, key: str | None, query: str = "", **fields: str) -> Reply:
    fields |= {} if key is None else {"authorization": f"Bearer {key}"}
    return client.ask("GET", f"/api/v1/openapi-docs{query}", b"", fields)


def test_the_document_of_a_key_describes_the_networks_of_that_key(client, rt):
    nameless = document_for(client, None)
    for providers in UNSEEN:
        assert document_for(client, key_for(rt, providers)).body == nameless.body
    assert document_for(client, "spk_unknown").body == nameless.body
    assert b"luesky" not in nameless.body
    assert nameless.headers["vary"] == "Authorization"
    compressed = document_for(client, None, **{"accept-encoding": "gzip"})
    assert compressed.headers["vary"] == "Authorization, Accept-Encoding"
    for providers in SEEN:
        shown = document_for(client, key_for(rt, providers)).json()
        schemas = shown["components"]["schemas"]
        assert schemas["Provider"]["enum"] == ["x", "tiktok", "pinterest", "bluesky"]
        assert schemas["Provider"]["description"].endswith("`bluesky` is Bluesky.")
        assert schemas["ProviderOptions"]["properties"]["bluesky"]["$ref"].endswith("/BlueskyOptions")
        assert "languages" in schemas["BlueskyOptions"]["properties"]
        assert shown["info"]["summary"] == "Publishes to X, TikTok, Pinterest and Bluesky."


def test_the_documents_differ_only_in_the_network(client, rt):
    """A client that was generated from one document can read the other."""
    plain, whole = document_for(client, None).json(), document_for(client, key_for(rt, ["all"])).json()
    schemas = whole["components"]["schemas"]
    del schemas["BlueskyOptions"], schemas["ProviderOptions"]["properties"]["bluesky"]
    schemas["Provider"] = plain["components"]["schemas"]["Provider"]
    for name in ("summary", "description"):
        whole["info"][name] = whole["info"][name].replace("TikTok, Pinterest and Bluesky", "TikTok and Pinterest")
    assert whole == plain


# --- agents ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def agents(rt: Runtime, app: App) -> Any:
    with Agent(app, key_for(rt, None)) as plain, Agent(app, key_for(rt, ["all"])) as whole:
        yield plain, whole


def options_of(agent: Agent) -> list[str]:
    (tool,) = [one for one in agent.request("tools/list").json()["result"]["tools"] if one["name"] == "create_post"]
    return list(tool["inputSchema"]["properties"]["options"]["properties"])


def test_the_tools_of_a_key_take_the_options_of_its_networks(agents):
    plain, whole = agents
    assert options_of(plain) == ["x", "tiktok", "pinterest"]
    assert options_of(whole) == ["x", "tiktok", "pinterest", "bluesky"]
    listed = whole.request("tools/list")
    assert len(json.dumps(listed.json()["result"]["tools"], separators=(",", ":"))) <= 8_000
    assert listed.json()["result"]["cacheScope"] == "private", "the lists of two keys differ"
    assert b"luesky" not in plain.request("tools/list").body


def test_the_instructions_name_the_networks_of_the_key(agents):
    plain, whole = (agent.request("server/discover").json()["result"]["instructions"] for agent in agents)
    assert plain.startswith("Publishes to the owner's accounts on X, TikTok and Pinterest. ")
    assert whole.startswith("Publishes to the owner's accounts on X, TikTok, Pinterest and Bluesky. ")
    assert len(whole) <= 800


# --- without the network ----------------------------------------------------------------------------------------------


def test_without_the_network_the_document_is_the_same_for_every_caller(rt):
    del rt.providers["bluesky"]
    with Client(create_app(rt), key_for(rt, None)) as client:
        assert "vary" not in document_for(client, client.key).headers
        assert b"luesky" not in document_for(client, client.key).body
