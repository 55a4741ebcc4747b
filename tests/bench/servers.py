"""The processes that are measured: the appliance as its owner starts it, the sandbox, a bare server and nginx.

Everything listens on loopback and uses one temporary folder. Leaving `Servers` ends every process that it started.
They also end when this process is killed.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
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
from tests.bench import memory, stock
from tests.bench.stock import Stock
from tests.support.ports import free_port

START_SECONDS = 30.0
PLENTY = 10**9


class Servers:
    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self._cache = cache
        self._ending = ExitStack()
        self.pids: list[int] = []
        self.bare_url = self.sandbox_url = ""

    def __enter__(self) -> Self:
        port = free_port()
        self.bare_url = f"http://127.0.0.1:{port}"
        bare = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.bare", str(port), str(self.folder)], stdin=subprocess.PIPE
        )
        self._ending.callback(_end, bare)
        self.bare_pid = bare.pid
        self.sandbox_url = f"http://127.0.0.1:{free_port()}"
        self.stock = self._prepare_stock()
        journal = shutil.copy(self.stock.journal, self.folder)
        address = urlsplit(self.sandbox_url).netloc
        sandbox = self._start("sandbox", "sandbox", "--listen", address, "--journal", str(journal))
        self.pids += [bare.pid, sandbox.process.pid]
        wait_until(lambda: answers(f"{self.bare_url}/"))
        wait_until(lambda: answers(f"{self.sandbox_url}/_control/"))
        for network, name in (("x", "POST /2/tweets"), ("tiktok", "creator_info")):
            call("POST", f"{self.sandbox_url}/_control/{network}/settings", {"limits": {name: PLENTY}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def _prepare_stock(self) -> Stock:
        folder = self.folder / "seed"
        folder.mkdir()
        template.create(folder)
        config = write_config(folder, free_port(), self.sandbox_url)
        return stock.prepare(self._cache, config, self.sandbox_url)

    def start_appliance(self, posts: int) -> "MeasuredAppliance":
        """Start an appliance with this number of posts, by `socialpub serve`."""
        appliance = self.fill_appliance(f"posts-{posts}", posts)
        appliance.process = self._start(f"posts-{posts}", "serve", config=appliance.config)
        self.pids.append(appliance.pid)
        wait_until(lambda: answers(f"{appliance.url}/readyz"))
        return appliance

    def fill_appliance(self, name: str, posts: int) -> "MeasuredAppliance":
        """Return an appliance with this number of posts, without a process."""
        folder = self.folder / name
        folder.mkdir()
        self.stock.copy(posts, folder / "data")
        port = free_port()
        appliance = MeasuredAppliance(write_config(folder, port, self.sandbox_url), port, self.sandbox_url, self.stock)
        self._ending.callback(appliance.close)
        return appliance

    def start_nginx(self) -> str | None:
        """Start nginx, which stores uploads in a folder. Return its URL, or None without nginx or its DAV module."""
        program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None or "http_dav_module" not in _output(program, "-V"):
            return None
        folder, port = self.folder / "nginx", free_port()
        folder.mkdir()
        config = folder / "nginx.conf"
        user = "" if os.geteuid() else "user root;"  # otherwise, root's nginx writes as another user
        config.write_text(NGINX.format(user=user, folder=folder, port=port))
        process = subprocess.Popen([program, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")])
        self._ending.callback(_end, process)
        self.pids.append(process.pid)
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
        return f"http://127.0.0.1:{port}"

    def cpu_seconds(self) -> float:
        return memory.cpu_seconds(pid for one in self.pids for pid in memory.tree(one))

    def _start(self, name: str, *arguments: str, config: Path | None = None) -> ChildProcess:
        # A variable of the environment must not turn this into another appliance.
        env = {key: value for key, value in os.environ.items() if not key.startswith("SOCIALPUB_")}
        log = self._ending.enter_context((self.folder / f"{name}.log").open("wb"))
        process = ChildProcess(*arguments, config=config, log=log, env=env)
        self._ending.callback(process.stop)
        return process


NGINX = """
{user}
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_max_body_size 0;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ root {folder}; dav_methods PUT; }}
    }}
}}
"""


class MeasuredAppliance:
    """`rt` is a second process over the same data, for actions that no caller can do. The profiles are those of X."""

    process: ChildProcess

    def __init__(self, config: Path, port: int, sandbox_url: str, prepared: Stock) -> None:
        self.config = config
        self.url = f"http://127.0.0.1:{port}"
        self.sandbox_url = sandbox_url
        self._open = CommandContext(config).open("bench")
        self.rt: Runtime = self._open.__enter__()
        self.facts = prepared.facts()
        self.profiles: list[str] = self.facts["profiles"]["x"]

    @property
    def pid(self) -> int:
        """The process `serve`: it is the web process, and the worker is its child."""
        return self.process.process.pid

    @cached_property
    def worker_pid(self) -> int:
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in memory.tree(self.pid)}
        return next(pid for pid, command in commands.items() if "worker" in command)

    @property
    def database(self) -> Path:
        return self.rt.settings.database_file

    def key(self, **limits: Any) -> str:
        """Return a new key. Each measure has its own, so that no measure reaches a rate limit."""
        return self.rt.write(api_keys.create, "bench", **limits)

    def close(self) -> None:
        self._open.__exit__(None, None, None)


def write_config(folder: Path, port: int, sandbox_url: str) -> Path:
    config = folder / "config.toml"
    config.write_text(
        f'base_url = "http://127.0.0.1:{port}"\nlisten = "127.0.0.1:{port}"\ndata_dir = "data"\n\n'
        f"[rate_limit]\nrequests_per_minute = 1000000\n\n{provider_lines(sandbox_url)}\n"
    )
    return config


# --- requests --------------------------------------------------------------------------------------------------------


def call(method: str, url: str, body: Any = None, key: str | None = None) -> Any:
    """Send one JSON request on a connection of its own. Raises SystemExit when it is refused."""
    text = fetch(method, url, None if body is None else json.dumps(body).encode(), key)
    return json.loads(text) if text else None


def fetch(method: str, url: str, body: bytes | None = None, key: str | None = None) -> bytes:
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    try:
        connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    if response.status >= 400:
        raise SystemExit(f"{method} {url} was answered with {response.status}: {text[:500]!r}")
    return text


def answers(url: str) -> bool:
    """Return whether a server listens there and does not report a fault of its own."""
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
    pause = threading.Event()
    for _ in range(int(seconds / every)):
        if true():
            return
        pause.wait(every)
    raise SystemExit(f"Something did not happen within {seconds:.0f} s. The logs of the processes may say why.")


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
