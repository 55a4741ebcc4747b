"""The processes that are measured: the appliance as its owner starts it, the sandbox, and a bare server.

Everything listens on loopback and lives in one temporary folder; leaving `Servers` ends every process that was
started here, and they end by themselves when this one is killed.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from socialpub.accounts import api_keys
from socialpub.cli.context import CommandContext
from socialpub.cli.run import ChildProcess
from socialpub.cli.sandbox import provider_lines
from socialpub.core.settings import template
from socialpub.runtime import Runtime
from tests.bench import stock
from tests.support.ports import free_port

START_SECONDS = 30.0


class Servers:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ending = ExitStack()
        self.bare_url = ""
        self.sandbox_url = ""

    def __enter__(self) -> Self:
        port = free_port()
        self.bare_url = f"http://127.0.0.1:{port}"
        bare = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.bare", str(port), str(self.folder)], stdin=subprocess.PIPE
        )
        self._ending.callback(_end, bare)
        port = free_port()
        self.sandbox_url = f"http://127.0.0.1:{port}"
        self._start("sandbox", "sandbox", "--listen", f"127.0.0.1:{port}", "--no-journal")
        wait_until(lambda: answers(f"{self.bare_url}/"))
        wait_until(lambda: answers(f"{self.sandbox_url}/_control/"))
        call("POST", f"{self.sandbox_url}/_control/x/settings", {"limits": {"POST /2/tweets": 10**9}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def start_appliance(self, name: str, posts: int) -> "MeasuredAppliance":
        """An appliance with this number of posts, started by `socialpub serve`."""
        appliance = self.fill_appliance(name, posts)
        appliance.process = self._start(name, "serve", config=appliance.config)
        wait_until(lambda: answers(f"{appliance.url}/readyz"))
        return appliance

    def fill_appliance(self, name: str, posts: int) -> "MeasuredAppliance":
        """An appliance with this number of posts, without a process."""
        appliance = MeasuredAppliance(self.folder / name, self.sandbox_url)
        self._ending.callback(appliance.close)
        appliance.fill(posts)
        return appliance

    def _start(self, name: str, *arguments: str, config: Path | None = None) -> ChildProcess:
        # A variable of the surroundings must not turn this into another appliance.
        env = {key: value for key, value in os.environ.items() if not key.startswith("SOCIALPUB_")}
        log = self._ending.enter_context((self.folder / f"{name}.log").open("wb"))
        process = ChildProcess(*arguments, config=config, log=log, env=env)
        self._ending.callback(process.stop)
        return process


class MeasuredAppliance:
    """`rt` is a second process over the same data, for what no caller can do."""

    process: ChildProcess

    def __init__(self, folder: Path, sandbox_url: str) -> None:
        self.config = folder / "config.toml"
        self.sandbox_url = sandbox_url
        folder.mkdir()
        template.create(folder)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.config.write_text(
            f'base_url = "{self.url}"\nlisten = "127.0.0.1:{port}"\ndata_dir = "data"\n\n'
            f"[rate_limit]\nrequests_per_minute = 1000000\n\n{provider_lines(sandbox_url)}\n"
        )
        self._open = CommandContext(self.config).open("bench")
        self.rt: Runtime = self._open.__enter__()
        self.profiles: list[str] = []
        self.tokens: list[str] = []

    @property
    def pid(self) -> int:
        """Of `serve`: it is the web process, and the worker is its child."""
        return self.process.process.pid

    def fill(self, posts: int) -> None:
        grants = [
            call("POST", f"{self.sandbox_url}/_control/x/grant", {"username": f"bench{number}"})
            for number in range(stock.PROFILES)
        ]
        self.tokens = [grant["accessToken"] for grant in grants]
        self.profiles = stock.connect_accounts(self.rt, grants)
        stock.fill(self.rt, self.profiles, posts)

    def key(self, **limits: Any) -> str:
        """A new key: each measure has its own, so that no rate limit is met."""
        return self.rt.write(api_keys.create, "bench", **limits)

    def close(self) -> None:
        self._open.__exit__(None, None, None)


def call(method: str, url: str, body: Any = None, key: str | None = None) -> Any:
    """One JSON call on a connection of its own. Raises SystemExit when it is refused."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    if response.status >= 400:
        raise SystemExit(f"{method} {url} was answered with {response.status}: {text[:500]!r}")
    return json.loads(text) if text else None


def answers(url: str) -> bool:
    """Whether somebody listens there and is well."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()


def wait_until(true: Callable[[], bool], seconds: float = START_SECONDS, every: float = 0.05) -> None:
    glances = threading.Event()
    for _ in range(int(seconds / every)):
        if true():
            return
        glances.wait(every)
    raise SystemExit(f"Something did not happen within {seconds:.0f} s; the logs of the processes may say why.")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
