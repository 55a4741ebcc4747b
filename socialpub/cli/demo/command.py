"""`socialpub demo`: the appliance and the sandbox publish first posts, without any account."""

import os
import signal
import socket
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click
import httpx2

from socialpub.cli.demo import walkthrough
from socialpub.cli.demo.video_encoder import encode
from socialpub.cli.demo.walkthrough import ApiClient, Posts
from socialpub.cli.output import CommandError, print_line, print_styled, spinner
from socialpub.cli.run import ChildProcess
from socialpub.cli.sandbox import network_labels, provider_lines
from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.settings import template
from socialpub.db import upgrade
from socialpub.db.connection import open_file
from socialpub.providers.registry import LABELS, SPECIFIED

USUAL_PORTS = {"appliance": 8000, "sandbox": 8100}
START_SECONDS = 60.0
START_POLL_SECONDS = 0.1


class DemoProcesses:
    """The processes of the appliance (`url`) and the sandbox (`sandbox_url`). The context manager ends both."""

    def __init__(self, folder: Path, *, all_networks: bool = False) -> None:
        self.all_networks = all_networks
        self.folder = folder.absolute()
        self.config = self.folder / "config.toml"
        self.logs = {name: self.folder / f"{name}.log" for name in USUAL_PORTS}
        self._processes: dict[str, ChildProcess] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / "demo.lock")
        if not self._lock.try_acquire():
            raise CommandError(f"A demo is already running in {self.folder}.", "Choose another folder: --folder DIR")
        _set_aside_unreadable(self.folder / "data")
        if not (self.folder / "data" / "secret.key").exists():
            self.config.unlink(missing_ok=True)
            template.create(self.folder)
        ports = {name: _free_port(usual) for name, usual in USUAL_PORTS.items()}
        self.url = f"http://127.0.0.1:{ports['appliance']}"
        self.sandbox_url = f"http://127.0.0.1:{ports['sandbox']}"
        self.config.write_text(
            "# The demo writes this file at every run.\n"
            f'base_url = "{self.url}"\nlisten = "127.0.0.1:{ports["appliance"]}"\ndata_dir = "data"\n\n'
            f"{provider_lines(self.sandbox_url, all_networks=all_networks)}"
        )

    def __enter__(self) -> "DemoProcesses":
        journal = str(self.folder / "sandbox.jsonl")
        listen = self.sandbox_url.removeprefix("http://")
        try:
            chosen = ["--all-networks"] if self.all_networks else []
            self._start("sandbox", "sandbox", "--listen", listen, "--journal", journal, *chosen)
            self._start("appliance", "serve", config=self.config, seconds=15.0)
            self._wait_for("sandbox", f"{self.sandbox_url}/_control/")
            self._wait_for("appliance", f"{self.url}/readyz")
            self._configure_sandbox()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.request_stop()
        for process in self._processes.values():
            process.stop()
        self._lock.release()

    def exited(self) -> str | None:
        """Return the name of a process that has ended unexpectedly."""
        return next((name for name, child in self._processes.items() if child.process.poll() is not None), None)

    def _start(self, name: str, *arguments: str, **how: Any) -> None:
        with self.logs[name].open("wb") as log:
            self._processes[name] = ChildProcess(*arguments, log=log, **how)

    def _configure_sandbox(self) -> None:
        """Shorten the networks' waits, and let TikTok fetch photos from this appliance."""
        tiktok = {
            "all_urls_verified": True,
            "processing_ticks": 1,
            "limits": {"video_init": 100, "content_init": 100},
        }
        settings = {"x": {"processing_ticks": 0}, "pinterest": {"processing_ticks": 1}, "tiktok": tiktok}
        with httpx2.Client(trust_env=False, timeout=30) as client:
            for network, changes in settings.items():
                response = client.post(f"{self.sandbox_url}/_control/{network}/settings", json=changes)
                response.raise_for_status()

    def _wait_for(self, name: str, url: str) -> None:
        pause = threading.Event()
        with httpx2.Client(trust_env=False) as client:
            for _ in range(int(START_SECONDS / START_POLL_SECONDS)):
                if self.exited() is not None:
                    break
                with suppress(httpx2.TransportError):
                    if client.get(url).status_code == 200:
                        return
                pause.wait(START_POLL_SECONDS)
        end = "\n".join(self.logs[name].read_text("utf-8", "replace").splitlines()[-15:])
        raise CommandError(f"The {name} did not start. The end of its log:\n{end}", f"Full log: {self.logs[name]}")


def _set_aside_unreadable(data: Path) -> None:
    """Rename the data of another version, which this version cannot read. The demo then starts with empty data."""
    if not (database := data / "socialpub.db").exists():
        return
    try:
        with open_file(database, "ro") as db:
            upgrade.refuse_unreadable(db, "The database")
    except (OperatorError, sqlite3.Error) as error:
        aside = data.rename(Path(tempfile.mkdtemp(prefix="unreadable-", dir=data.parent), data.name))
        print_line(f"The demo starts with empty data. It cannot read the data in {aside}: {error}")


def _free_port(usual: int) -> int:
    """Return the usual port if it is free, otherwise any free port."""
    for port in (usual, 0):
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(sock.getsockname()[1])
    raise CommandError("No port is free on 127.0.0.1.", "Try again later.")


# --- the command ------------------------------------------------------------------------------------------------------

POLL_SECONDS = 1.0


@click.command()
@click.option("--once", is_flag=True, help="Exit with 0 when everything is published.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder for the demo's data. Default: socialpub-demo in your cache folder.",
)
@click.option("--all-networks", is_flag=True, help="Also use the networks beyond the specification.")
def demo(once: bool, folder: Path | None, all_networks: bool) -> None:
    """Run a demo: the appliance, simulated networks, and first posts. No account is needed."""
    # A variable of another appliance must not send the demo's posts to a real network.
    for name in [name for name in os.environ if name.startswith("SOCIALPUB_")]:
        del os.environ[name]
    # SIGTERM cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    processes = DemoProcesses(folder or Path(cache, "socialpub-demo"), all_networks=all_networks)
    # The printed commands use this variable, as `use_config` explains.
    os.environ[commands.CONFIG_VARIABLE] = str(processes.config)
    commands.repeat_config(None)
    try:
        with ExitStack() as ending:
            video = ending.enter_context(ThreadPoolExecutor(1)).submit(encode, processes.folder / walkthrough.VIDEO)
            with spinner("Starting the appliance and the sandbox"):
                ending.enter_context(processes)
            print_styled(("socialpub", "bold"), f" is running at {processes.url}")
            simulated = network_labels(all_networks=all_networks)
            print_line(f"The sandbox at {processes.sandbox_url} simulates {simulated}.")
            print_line("Nothing leaves this machine.")
            client = ApiClient(processes.url)
            ending.callback(client.close)
            posts = walkthrough.run(processes.config, client, video.result)
            _show_addresses(processes, posts)
            require_success(processes, posts)
            if not once:
                _stay(processes)
    except httpx2.TransportError as error:
        raise CommandError(
            f"The appliance or the sandbox stopped answering: {error}", f"The logs are in {processes.folder}."
        ) from error
    except KeyboardInterrupt:
        if once:
            raise


def _show_addresses(processes: DemoProcesses, posts: Posts) -> None:
    networks = tuple(LABELS) if processes.all_networks else SPECIFIED
    rows = [
        *((f"Posts on {LABELS[name]}", f"{processes.sandbox_url}/{name}/feed") for name in networks),
        ("API reference", f"{processes.url}/api/v1/openapi-docs"),
        ("Health", f"{processes.url}/readyz"),
    ]
    print_line()
    print_styled(("URLs to open", "bold"))
    for label, value in rows:
        print_styled(f"   {label:<30}", (value, "cyan"))
    print_line()
    print_styled(("To see each call of the posts", "bold"))
    print_styled((f"   {walkthrough.use_config(processes.config)}", "dim"))
    for kind, post in posts.items():
        print_styled((f"   {commands.line('admin', 'show-post', post['id'])}   # the {kind}", "dim"))


def require_success(processes: DemoProcesses, posts: Posts) -> None:
    """Raise CommandError with every network that did not publish its post, and the reason."""
    missing = [
        f"The {kind} is not on {LABELS[delivery['provider']]} “{delivery['profileName']}” ({delivery['status']}): "
        f"{delivery.get('errorMessage') or 'no outcome yet'}"
        for kind, post in posts.items()
        for delivery in post["deliveries"]
        if delivery["status"] != "published"
    ]
    if missing:
        raise CommandError(
            "\n".join(missing),
            f"The logs are in {processes.folder}. To start with empty data, add: --folder NEW_FOLDER",
        )


def _stay(processes: DemoProcesses) -> None:
    print_line()
    print_styled(("The dashboard (this link signs you in, once)", "bold"))
    print_styled("   ", (walkthrough.sign_in_link(processes.config, processes.url), "cyan"))
    print_line()
    print_line("The demo continues until you press Ctrl-C.")
    pause = threading.Event()
    while (name := processes.exited()) is None:
        pause.wait(POLL_SECONDS)
    raise CommandError(f"The {name} ended unexpectedly.", f"Its log: {processes.logs[name]}")
