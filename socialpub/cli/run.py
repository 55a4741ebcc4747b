"""`socialpub serve`, `web` and `worker`: the processes of the appliance. `serve` runs the worker as its child.

Each command imports its own server, so a worker never loads the web server. A child always ends with its parent: the
parent holds one end of a pipe and never writes. When the parent closes the pipe or is killed, the child reads the end
of its standard input and stops as after SIGTERM.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import print_note
from socialpub.core import logging

if TYPE_CHECKING:
    from socialpub.runtime import Runtime
STOP_SECONDS = 10.0
"""The time that a child may take to stop cleanly, since `serve` promises fifteen seconds in all. A longer network call
is read back after the next start."""

OPTION = "--end-with-parent"

end_with_parent_option = click.option(
    OPTION, "stop_seconds", type=float, hidden=True, help="End within SECONDS when standard input ends."
)


class ChildProcess:
    """`socialpub ARGUMENTS` as a child in its own session, so that Ctrl-C reaches only the parent."""

    def __init__(
        self,
        *arguments: str,
        config: Path | None = None,
        seconds: float = STOP_SECONDS,
        log: IO[bytes] | int | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self._seconds = seconds
        before = ["--config", str(config)] if config else []
        self.process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "socialpub", *before, *arguments, OPTION, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )

    def request_stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self) -> int:
        self.request_stop()
        try:
            return self.process.wait(self._seconds + 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def end_with_parent(stop_seconds: float | None) -> None:
    """End this child within `stop_seconds` after its parent. None: there is no parent."""
    if stop_seconds is None:
        return
    threading.Thread(target=_watch_parent, args=(stop_seconds,), name="parent watch", daemon=True).start()


def _watch_parent(stop_seconds: float) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(stop_seconds)
    os._exit(0)


FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
SETTLED_SECONDS = 60.0
"""The run time after which a worker's start counts as successful, so that the next pause is short again."""

log = logging.get_logger(__name__)


@click.command()
@end_with_parent_option
@click.option("--init", "create", is_flag=True, help="If there is no configuration, run `init` first.")
@pass_command_context
def serve(context: CommandContext, stop_seconds: float | None, create: bool) -> None:
    """Run the appliance (web server and worker together) until Ctrl-C or SIGTERM."""
    from socialpub.ops.notify import send
    from socialpub.web.http import server

    end_with_parent(stop_seconds)
    if create:
        from socialpub.cli.setup import create_if_missing

        create_if_missing(context)
    with context.start("web") as rt:
        send.refuse_wrong_addresses(rt.settings)
        _warn_about_proxies()
        supervisor = WorkerSupervisor(rt.settings.config_file)
        # Both stop at the same moment: the web server sets `stopping` when it must stop.
        threading.Thread(target=_stop_together, args=(rt.stopping, supervisor), daemon=True).start()
        # Before the worker, so that a second `serve` finds the port in use and starts no second worker.
        sockets = server.open_for(rt)
        _offer_dashboard(rt)
        supervisor.start()
        try:
            code = server.run(rt, sockets)
        finally:
            supervisor.stop()
    sys.exit(code)


@click.command()
@pass_command_context
def web(context: CommandContext) -> None:
    """Run the web server alone: the API, uploads and stored media."""
    from socialpub.web.http import server

    with context.start("web") as rt:
        _warn_about_proxies()
        code = server.run(rt, server.open_for(rt))
    sys.exit(code)


@click.command()
@end_with_parent_option
@pass_command_context
def worker(context: CommandContext, stop_seconds: float | None) -> None:
    """Run the worker alone. It publishes due posts."""
    from socialpub.ops.notify import send
    from socialpub.worker import process

    end_with_parent(stop_seconds)
    with context.start("worker") as rt:
        send.refuse_wrong_addresses(rt.settings)
        if stop_seconds is None:  # `serve` has warned already
            _warn_about_proxies()
        code = process.run(rt)
    sys.exit(code)


def _warn_about_proxies() -> None:
    from socialpub.providers.failures import PROXY_REMEDY, find_unusable_proxies

    for sentence in find_unusable_proxies():
        log.error(f"{sentence} Nothing can be sent to the networks. {PROXY_REMEDY}")


def _offer_dashboard(rt: "Runtime") -> None:
    from socialpub.accounts import sign_in
    from socialpub.accounts.sign_in import Purpose

    if rt.settings.dashboard.enabled and not sign_in.is_password_set(rt.db):
        token = rt.write(sign_in.create_link, Purpose.SET_UP)
        link = f"{rt.settings.base_url}/setup?token={token}"
        print_note(f"Set the dashboard's password. The link works once and for one day: {link}")


def _stop_together(stopping: threading.Event, supervisor: "WorkerSupervisor") -> None:
    stopping.wait()
    supervisor.request_stop()


class WorkerSupervisor:
    """Restarts the worker when it dies, and ends it with `serve`."""

    def __init__(self, config: Path | None) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._child: ChildProcess | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker supervisor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._child is not None:
                self._child.request_stop()

    def stop(self) -> None:
        self.request_stop()
        if self._child is not None:
            self._child.stop()
        self._thread.join()

    def _supervise(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while (child := self._start_worker()) is not None:
            try:
                code = child.process.wait(SETTLED_SECONDS)
            except subprocess.TimeoutExpired:
                pause = FIRST_PAUSE_SECONDS
                code = child.process.wait()
            if self._stopping.is_set():
                return
            child.request_stop()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            log.error("the worker ended and is restarted", how=how, seconds=pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _start_worker(self) -> ChildProcess | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._child = ChildProcess("worker", config=self._config, env=dict(os.environ))
            return self._child
