"""Without a network beyond the specification in the configuration, nothing names one (contract 11.1).

The manual, the changelog and `config --example` describe everything that can be configured.
"""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from socialpub.accounts import api_keys
from socialpub.cli.main import main
from socialpub.core.settings import template
from socialpub.providers.registry import LABELS, SPECIFIED
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.pages.pages import PROBLEM_PAGES
from tests.integration.mcp.agent import CONNECTED, Agent
from tests.integration.uploads.caller import Caller
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.hand_clock import HandClock

WORDS = [word.casefold() for name, label in LABELS.items() if name not in SPECIFIED for word in (name, label)]
DOCUMENT = "/api/v1/openapi-docs"
PUBLIC = [
    "/", "/healthz", "/readyz", "/metrics", DOCUMENT, f"{DOCUMENT}?format=page", "/oauth/nothing/callback", "/nothing",
    *(f"/problems/{slug}" for slug in PROBLEM_PAGES),
]  # fmt: skip
OF_A_KEY = [DOCUMENT, "/api/v1/profiles", "/api/v1/posts", "/api/v1/publish/logs", "/api/v1/posts?providers=nothing"]
REFUSED = b'{"post": {"body": "x"}, "profiles": [], "providerOptions": {"nothing": {}}, "nothing": 1}'


def named_in(shown: bytes | str) -> list[str]:
    text = (shown.decode(errors="replace") if isinstance(shown, bytes) else shown).casefold()
    return [word for word in WORDS if word in text]


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


COMMANDS = list(commands(main))


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


def test_there_is_a_network_to_look_for() -> None:
    assert "bluesky" in WORDS
    assert named_in("… on Bluesky") != []
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_help_names_it(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    assert named_in(shown.output) == []


def test_a_new_configuration_does_not_name_it() -> None:
    assert named_in(template.CONFIG) == []


def test_no_public_page_names_it(app: App) -> None:
    with Caller(app, "") as stranger:
        for path in PUBLIC:
            for kind in ("application/json", "text/html"):
                assert named_in(stranger.ask("GET", path, b"", {"accept": kind}).body) == [], (path, kind)


@pytest.mark.parametrize("providers", [None, ["all"], ["x"]], ids=str)
def test_no_answer_to_a_key_names_it(rt: Runtime, app: App, clock: HandClock, providers: list[str] | None) -> None:
    accept(rt, add_profile(rt))
    drain(rt, clock)
    key = rt.write(api_keys.create, "any", "write", providers)
    with Caller(app, key) as caller:
        fields = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        for path in OF_A_KEY:
            assert named_in(caller.ask("GET", path, b"", fields).body) == [], path
        for path in ("/api/v1/posts", "/api/v1/posts/validate"):
            refused = caller.ask("POST", path, REFUSED, fields)
            assert refused.status == 400
            assert named_in(refused.body) == [], path


@pytest.mark.parametrize("providers", [None, ["all"]], ids=str)
def test_no_agent_reads_of_it(rt: Runtime, app: App, providers: list[str] | None) -> None:
    add_profile(rt)
    with Agent(app, rt.write(api_keys.create, "agent", "write", providers)) as agent:
        listed = agent.request("tools/list")
        assert listed.json()["result"]["cacheScope"] == "public", "every key gets the same list"
        hello = {"protocolVersion": CONNECTED[-1], "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        shown = [listed, agent.request("server/discover"), agent.request("initialize", hello, revision=CONNECTED[-1])]
        assert [named_in(reply.body) for reply in shown] == [[], [], []]
        refused = agent.call("create_post", text="x", profiles=["x"], options={"nothing": {}}, replyTo="nothing")
        assert named_in(str(refused)) == []
