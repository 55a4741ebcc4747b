"""A shell beside an appliance: commands in this process, requests to the application, and a worker while they wait."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from socialpub.accounts import api_keys
from socialpub.cli.client import outcome
from socialpub.cli.client.connection import ApplianceConnection
from socialpub.cli.main import main
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client, check
from tests.support.appliance import add_profile
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

Shell = Callable[..., Result]
Fault = Callable[[Callable[[], httpx2.Response]], httpx2.Response]
"""Gets the function that sends the request, and returns what the command gets."""


class Wire:
    """The way from the command to the appliance. `faults["POST /posts"]` has what happens to the next such requests."""

    def __init__(self, rt: Runtime, client: Client) -> None:
        self.rt = rt
        self.client = client
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.requests: list[httpx2.Request] = []
        self.works = True
        """Whether a worker delivers while a command waits."""
        self.clock: HandClock | None = None
        """If it is set, the worker also delivers what becomes due later."""

    def send(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        body = b"".join(request.stream)  # type: ignore[arg-type]
        line = f"{request.method} {request.url.path.removeprefix('/api/v1')}"

        def ask() -> httpx2.Response:
            query = request.url.copy_remove_param("wait").query.decode()
            url = f"{request.url.path}?{query}" if query else request.url.path
            if "wait" in request.url.params and self.works:
                drain(self.rt, self.clock)
            reply = self.client.ask(request.method, url, body, dict(request.headers))
            check(request.method, request.url.path, reply)
            return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

        return self.faults[line].pop(0)(ask) if self.faults[line] else ask()


def lost(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
    """The request arrives. The response does not."""
    ask()
    raise httpx2.RemoteProtocolError("cut")


def refused(*_: object) -> httpx2.Response:
    raise httpx2.ConnectError("refused") from ConnectionRefusedError()


def busy(_: object) -> httpx2.Response:
    problem = {"detail": "The database is locked.", "status": 503}
    return httpx2.Response(503, headers={"retry-after": "7"}, json=problem)


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork]) -> dict[str, Any]:
    return {"providers": three_networks}


@pytest.fixture
def key(rt: Runtime) -> str:
    return rt.write(api_keys.create, "script")


@pytest.fixture
def accounts(rt: Runtime) -> dict[str, str]:
    """An account of X, and two of Pinterest."""
    return {
        "acme": add_profile(rt, name="Acme", username="AcmeCorp"),
        "shop": add_profile(rt, "pinterest", "shop", name="Shop", username="shop"),
        "home": add_profile(rt, "pinterest", "home", name="Home"),
    }


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that a command makes. They take no time."""
    asked: list[float] = []
    monkeypatch.setattr(ApplianceConnection, "pause", lambda _, seconds: asked.append(seconds))
    return asked


@pytest.fixture
def offline_shell(tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell whose appliance cannot be reached."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SOCIALPUB_URL", "http://appliance.test")
    monkeypatch.setenv("SOCIALPUB_KEY", "spk_none_none")
    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", refused)
    # Every look at the clock takes half a minute.
    monkeypatch.setattr(outcome, "time", SimpleNamespace(monotonic=count(0.0, 30.0).__next__))

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def wire(rt: Runtime, key: str, monkeypatch: pytest.MonkeyPatch, offline_shell: Shell) -> Iterator[Wire]:
    with Client(create_app(rt), key) as client:
        wire = Wire(rt, client)
        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", lambda _, request: wire.send(request))
        monkeypatch.setenv("SOCIALPUB_KEY", key)
        yield wire


@pytest.fixture
def shell(offline_shell: Shell, wire: Wire, accounts: dict[str, str]) -> Shell:
    return offline_shell
