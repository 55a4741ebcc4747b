"""Callers outside of Python: the examples of the manual, run by the program that users run them with."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.settings.schema import MediaSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.samples import media
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.readme import ROOT, blocks, topic
from tests.support.scripted_network import ScriptedNetwork
from tests.support.served import served

PAGE = topic("callers")


def example(section: str, language: str, position: int = 0) -> str:
    """Return a fenced block of the page about callers."""
    level = "###" if f"\n### {section}\n" in PAGE.read_text() else "##"
    return blocks(PAGE, f"{level} {section}", language)[position]


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork]) -> dict[str, Any]:
    return {"providers": three_networks, "media": MediaSection(import_from=("127.0.0.1",))}


@pytest.fixture
def url(rt: Runtime, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An appliance on a port. Its worker works while a caller waits."""
    app = create_app(rt)
    wait = app.state.long_poll.until_final

    async def work_and_wait(*arguments: Any) -> None:
        await asyncio.to_thread(drain, rt, clock)
        await wait(*arguments)

    monkeypatch.setattr(app.state.long_poll, "until_final", work_and_wait)
    with served(app) as url:
        yield url


@pytest.fixture
def image_url(tmp_path: Path) -> Iterator[str]:
    """An image on a web server of the owner's network."""
    folder = tmp_path / "host"
    folder.mkdir()
    media.jpeg(folder / "garden.jpg")

    class Host(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(folder))) as host:
        thread = Thread(target=host.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{host.server_port}/garden.jpg"
        host.shutdown()
        thread.join()


@pytest.fixture
def key(rt: Runtime) -> str:
    return rt.write(api_keys.create, "caller")


@pytest.fixture
def env(url: str, key: str, profile: str, tmp_path: Path) -> dict[str, str]:
    """The variables that the page asks for."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SOCIALPUB_URL": url,
        "SOCIALPUB_KEY": key,
        "PROFILE": profile,
    }


@pytest.fixture
def programs(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has installed socialpub."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "socialpub"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m socialpub "$@"\n')
    program.chmod(0o755)
    return {**env, "PATH": f"{program.parent}:{env['PATH']}", "PYTHONPATH": str(ROOT)}


def run(
    command: Sequence[str], env: Mapping[str, str], folder: Path, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, input=stdin, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
