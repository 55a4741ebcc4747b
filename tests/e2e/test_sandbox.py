"""The sandbox as somebody starts it who wants to try socialpub: in a folder, ended by Ctrl-C, started again."""

import json
import os
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.caller import SandboxControl
from tests.e2e.processes import Process, until
from tests.support.ports import free_port

StartSandbox = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartSandbox]:
    """`start("--listen", …)` is the sandbox, up, in the test's folder."""
    started: list[Process] = []

    def begin(*arguments: str) -> Process:
        log = tmp_path / f"sandbox{len(started)}.log"
        started.append(Process("sandbox", *arguments, log=log, env=os.environ, cwd=tmp_path))
        until(lambda: "Press Ctrl-C" in started[-1].output or not started[-1].running, "the sandbox is up or gone")
        return started[-1]

    yield begin
    for process in started:
        process.end()


def url_of(process: Process) -> str:
    return process.output.partition("/\n")[0]


def token_of_newcomer(process: Process) -> str:
    with closing(SandboxControl(url_of(process), "x")) as control:
        return str(json.loads(control.grant("newcomer"))["accessToken"])


def me(url: str, token: str) -> str:
    with httpx2.Client(trust_env=False) as client:
        answer = client.get(f"{url}/x/2/users/me", headers={"authorization": f"Bearer {token}"})
    return str(answer.json()["data"]["username"]) if answer.status_code == 200 else ""


def press_ctrl_c(process: Process) -> None:
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 0, process.output


def test_two_in_one_folder_keep_what_is_theirs(start: StartSandbox, tmp_path: Path) -> None:
    first, second = start("--listen", "127.0.0.1:0"), start("--listen", "127.0.0.1:0")
    assert f"{tmp_path / 'sandbox-2.jsonl'}\n" in second.output
    token = token_of_newcomer(second)
    assert me(url_of(second), token) == "newcomer"
    assert me(url_of(first), token) == ""
    third = start("--listen", "127.0.0.1:0", "--journal", "sandbox.jsonl")
    assert third.wait() == 1
    assert "Another sandbox uses" in third.output and "--journal" in third.output


def test_one_without_a_journal_says_so_and_leaves_nothing(start: StartSandbox, tmp_path: Path) -> None:
    process = start("--listen", "127.0.0.1:0", "--no-journal")
    assert "removed at the end" in process.output
    token_of_newcomer(process)
    press_ctrl_c(process)
    assert list(tmp_path.glob("*.jsonl")) == []


def test_a_journal_that_cannot_be_written_stops_the_start(start: StartSandbox) -> None:
    process = start("--listen", "127.0.0.1:0", "--journal", "missing/sandbox.jsonl")
    assert process.wait() == 1
    assert "cannot write" in process.output and "--no-journal" in process.output


def test_its_configuration_is_printed_alone(start: StartSandbox) -> None:
    listen = f"127.0.0.1:{free_port()}"
    printed = start("--print-config", "--listen", listen)
    assert printed.wait() == 0
    networks = tomllib.loads(printed.output)["providers"]
    assert {name: section["api_url"].startswith(f"http://{listen}/{name}") for name, section in networks.items()} == {
        "x": True,
        "tiktok": True,
        "pinterest": True,
    }
    assert "Press Ctrl-C" in start("--listen", listen).output, "nothing runs there yet"


def test_bluesky_is_shown_when_all_networks_are_wanted(start: StartSandbox) -> None:
    plain = start("--listen", "127.0.0.1:0", "--no-journal")
    assert "luesky" not in plain.output
    process = start("--listen", "127.0.0.1:0", "--no-journal", "--all-networks")
    url = url_of(process)
    assert f"  {url}/bluesky/feed\n" in process.output
    assert "connect-profile bluesky --handle demo.test   # demo-demo-demo-demo" in process.output
    lines = process.output.partition("[providers.x]")
    section = tomllib.loads("".join(lines[1:]).partition("\nThen connect")[0])["providers"]["bluesky"]
    assert section == {
        "enabled": True,
        "service": f"{url}/bluesky",
        "plc_url": f"{url}/bluesky/plc",
    }
    with httpx2.Client(trust_env=False) as client:
        assert "bluesky/feed" in client.get(f"{url}/").text
        assert "luesky" not in client.get(f"{url_of(plain)}/").text
