"""An account is connected from the terminal, with a browser somewhere."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from socialpub.ops.doctor import configuration
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.cli.conftest import Terminal
from tests.integration.uploads.caller import Caller
from tests.support.consent_browser import Browser
from tests.support.sandbox_transport import SandboxTransport
from tests.support.select import select_value

HERE = "http://127.0.0.1:8000"
NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"


class Meanwhile(threading.Event):
    """Actions that run one after the other while a command waits. Then time passes."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.things: list[Callable[[], object]] = []
        self._terminal = terminal

    def wait(self, timeout: float | None = None) -> bool:
        if self.things:
            self.things.pop(0)()
        else:
            self._terminal.clock.forward(60)
        return False


@pytest.fixture
def meanwhile(terminal: Terminal) -> Meanwhile:
    waiting = terminal.parts["stopping"] = Meanwhile(terminal)
    return waiting


@pytest.fixture
def web(terminal: Terminal, rt: Runtime) -> Iterator[Caller]:
    app = create_app(rt)
    terminal.mounts[HERE] = SandboxTransport(app)
    with Caller(app, "") as caller:
        yield caller


@pytest.fixture
def consent_url(terminal: Terminal, rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the address that the command has printed."""
    from socialpub.cli.admin import profiles

    shown: list[str] = []
    print_note = profiles.print_note

    def read_note(text: str = "") -> None:
        shown.extend(re.findall(r"http://sandbox\.test/\S+", text))
        print_note(text)

    monkeypatch.setattr(profiles, "print_note", read_note)
    return shown


def come_back(terminal: Terminal, web: Caller, urls: list[str], *how: str) -> Callable[[], object]:
    """Give consent on the printed page, and return to the appliance."""

    def go() -> None:
        parts = urlsplit(Browser(terminal.world).decides(urls[-1], *how))
        web.ask("GET", f"{parts.path}?{parts.query}")

    return go


def profiles_of(terminal: Terminal) -> Any:
    return json.loads(terminal("admin", "list-profiles", "--json").stdout)


# --- with a browser --------------------------------------------------------------------------------------------------


def test_the_profiles_id_is_printed_once_the_browser_has_come_back(
    terminal: Terminal, web: Caller, meanwhile: Meanwhile, consent_url: list[str]
) -> None:
    meanwhile.things = [lambda: None, come_back(terminal, web, consent_url)]
    done = terminal.success("admin", "connect-profile", "x", "--name", "News")
    (profile,) = profiles_of(terminal)
    assert done.stdout == f"{profile['id']}\n"
    assert (profile["name"], profile["username"], profile["status"]) == ("News", "demo", "active")
    # The address to open comes first: a person who opens the first address finds the consent page.
    assert done.stderr.index(consent_url[0]) < done.stderr.index(f"  {HERE}/oauth/x/callback")
    assert "@demo is connected" in done.stderr


def test_a_browser_that_never_comes_back_is_waited_for_ten_minutes(
    terminal: Terminal, web: Caller, meanwhile: Meanwhile
) -> None:
    began = terminal.clock.now()
    assert "within ten minutes" in terminal.refusal("admin", "connect-profile", "x")
    assert (terminal.clock.now() - began).total_seconds() == 600


def test_leaving_with_ctrl_c_leaves_nothing_open(
    terminal: Terminal, web: Caller, meanwhile: Meanwhile, consent_url: list[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile.things = [interrupt]
    done = terminal.refusal("admin", "connect-profile", "x")
    assert "Nothing was connected" in done
    assert "Traceback" not in done
    come_back(terminal, web, consent_url)()
    assert profiles_of(terminal) == []


def test_without_a_web_process_the_other_way_is_offered(terminal: Terminal) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    terminal.mounts[HERE] = httpx2.MockTransport(refuse)
    done = terminal.refusal("admin", "connect-profile", "x")
    assert "nothing answers at that URL" in done
    assert "--paste" in done
    with terminal.open() as rt:
        assert select_value(rt.db, "SELECT count(*) FROM consent") == 0


def test_an_address_that_leads_elsewhere_is_reported_before_consent(terminal: Terminal) -> None:
    other = httpx2.Response(200, json={"status": "ok", "instance": "0123456789abcdef"})
    terminal.mounts[HERE] = httpx2.MockTransport(lambda _: other)
    done = terminal.refusal("admin", "connect-profile", "x")
    assert f"X would send your browser to {HERE}, which does not lead to this appliance" in done
    with terminal.open() as rt:
        assert select_value(rt.db, "SELECT count(*) FROM consent") == 0


@pytest.mark.parametrize("paste", [[], ["--paste"]])
def test_a_web_server_with_an_older_configuration_is_reported_before_consent(
    terminal: Terminal, web: Caller, paste: list[str]
) -> None:
    with terminal.open("web") as running:
        configuration.publish_configuration(running)
        terminal.config.write_text(terminal.config.read_text().replace('client_id = "app"', 'client_id = "new"', 1))
        done = terminal.refusal("admin", "connect-profile", "x", *paste)
        assert "earlier values of providers.x.client_id." in done and "and start it again" in done
        assert "consent" not in done
        # What it does not need for this may differ.
        other = terminal("admin", "connect-profile", "pinterest", "--paste", stdin="")
        assert "start it again" not in other.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["myspace"], 2, "not one of x, tiktok, pinterest"),
        ([], 2, "PROVIDER"),
        (["tiktok", "--paste"], 1, "client_key and client_secret in [providers.tiktok]"),
        (["x", "--paste", "--profile", NOBODY], 1, "no profile"),
        (["x", "--paste", "--name", ""], 1, "name"),
    ],
)
def test_what_cannot_be_begun_says_why(terminal: Terminal, arguments: list[str], code: int, said: str) -> None:
    done = terminal("admin", "connect-profile", *arguments)
    assert done.exit_code == code
    assert done.stdout == ""
    assert said in done.stderr


# --- without one -----------------------------------------------------------------------------------------------------


class Pasting:
    """Standard input that reads the output of the command first."""

    def __init__(self, *lines: Callable[[], str]) -> None:
        self._lines = list(lines)

    def readline(self) -> str:
        return self._lines.pop(0)() if self._lines else ""


def paste(monkeypatch: pytest.MonkeyPatch, *lines: Callable[[], str]) -> None:
    from types import SimpleNamespace

    from socialpub.cli.admin import profiles

    monkeypatch.setattr(profiles, "sys", SimpleNamespace(stdin=Pasting(*lines)))


@pytest.mark.parametrize("part", [0, 1], ids=["whole", "query"])
def test_on_a_headless_server_the_address_is_pasted(
    terminal: Terminal, consent_url: list[str], monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    def address() -> str:
        whole = Browser(terminal.world).decides(consent_url[-1])
        return (whole, whole.partition("?")[2])[part] + "\n"

    paste(monkeypatch, lambda: "\n", lambda: "what is this?\n", address)
    done = terminal.success("admin", "connect-profile", "x", "--paste")
    (profile,) = profiles_of(terminal)
    assert done.stdout == f"{profile['id']}\n"
    assert "not the address" in done.stderr


def test_a_network_with_an_address_of_its_own_is_connected_by_pasting(
    terminal: Terminal, consent_url: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    redirect = "http://127.0.0.1:9/back"
    terminal.config.write_text(
        terminal.config.read_text().replace("[providers.x]\n", f'[providers.x]\nredirect_url = "{redirect}"\n', 1)
    )
    done = terminal.refusal("admin", "connect-profile", "x")
    assert redirect in done and "--paste" in done
    elsewhere = "http://127.0.0.1:8000/oauth/x/callback?state=s&code=c\n"
    paste(monkeypatch, lambda: elsewhere, lambda: Browser(terminal.world).decides(consent_url[-1]))
    done = terminal.success("admin", "connect-profile", "x", "--paste")
    assert f"not the redirect address of this attempt, which is {redirect}" in done.stderr
    assert done.stdout.strip() == profiles_of(terminal)[0]["id"]


def test_a_web_process_that_was_faster_than_the_pasting_is_fine(
    terminal: Terminal, web: Caller, consent_url: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late() -> str:
        come_back(terminal, web, consent_url)()
        return "http://127.0.0.1:8000/oauth/x/callback?state=s&code=c\n"

    paste(monkeypatch, late)
    assert terminal.success("admin", "connect-profile", "x", "--paste").stdout.strip() == profiles_of(terminal)[0]["id"]


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_new_tokens_can_be_asked_for_at_any_time(terminal: Terminal) -> None:
    profile = terminal.connect()
    done = terminal.success("admin", "refresh-profile", profile)
    assert done.stdout == ""
    assert "new access token, valid until 2026-10-12 11:00:00 UTC" in done.stderr
    assert terminal.world.x.counts["token"] == 1


def test_a_refresh_prints_what_changed_of_the_account(terminal: Terminal) -> None:
    profile = terminal.connect()
    assert "The account data has not changed." in terminal("admin", "refresh-profile", profile).stderr
    terminal.world.x.change_account("demo", handle="renamed", name="Renamed", subscription_type="Premium")
    done = terminal.success("admin", "refresh-profile", profile)
    assert "The handle is now @renamed." in done.stderr
    assert "Longest text: 25,000 characters (before: 280 characters)." in done.stderr
    (shown,) = profiles_of(terminal)
    assert (shown["username"], shown["name"]) == ("renamed", "Renamed")


def test_a_profile_without_a_refresh_token_keeps_what_it_has(terminal: Terminal) -> None:
    grant = json.loads(terminal.grant(scopes=["tweet.read", "tweet.write", "users.read"]))
    profile = terminal("admin", "import-profile", "x", stdin=json.dumps(grant)).stdout.strip()
    terminal.world.x.change_account("demo", subscription_type="Premium")
    done = terminal.refusal("admin", "refresh-profile", profile)
    assert "does not have a refresh token" in done
    assert "Subscription: Premium" in done, "the account data needs none"
    (shown,) = profiles_of(terminal)
    assert shown["status"] == "active"
    assert "does not have a refresh token" in shown["warning"], "its two hours are within the week"
