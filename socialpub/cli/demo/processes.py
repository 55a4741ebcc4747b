"""The demo's processes: the sandbox and the appliance on free ports, with a folder of their own.

A later run uses the same folder again: the same data, and the same posts in the sandbox.
"""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from socialpub.cli.child_process import ChildProcess
from socialpub.cli.output import CommandError
from socialpub.cli.sandbox import provider_lines
from socialpub.core.locks import FileLock
from socialpub.core.settings import template

USUAL_PORTS = {"appliance": 8000, "sandbox": 8100}
VERIFICATION = {"file_name": "tiktokdemo.txt", "content": "tiktok-developers-site-verification=demo"}
"""The file that verifies the appliance's address for the sandbox's TikTok. The appliance serves it."""
VERIFICATION_LINES = f"""\
verification_file = "{VERIFICATION["file_name"]}"
verification_content = "{VERIFICATION["content"]}"
"""
START_SECONDS = 60.0
POLL_SECONDS = 0.1


class DemoProcesses:
    """`url` is the appliance's address, `sandbox_url` the sandbox's. As a context manager, it ends both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.config = self.folder / "config.toml"
        self.logs = {name: self.folder / f"{name}.log" for name in USUAL_PORTS}
        self._processes: dict[str, ChildProcess] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / "demo.lock")
        if not self._lock.try_acquire():
            raise CommandError(f"A demo is running in {self.folder} already.", "Choose another folder: --folder DIR")
        if not (self.folder / "data" / "secret.key").exists():
            self.config.unlink(missing_ok=True)
            template.create(self.folder)
        ports = {name: _free_port(usual) for name, usual in USUAL_PORTS.items()}
        self.url = f"http://127.0.0.1:{ports['appliance']}"
        self.sandbox_url = f"http://127.0.0.1:{ports['sandbox']}"
        self.config.write_text(
            "# The demo writes this file again at every run.\n"
            f'base_url = "{self.url}"\nlisten = "127.0.0.1:{ports["appliance"]}"\ndata_dir = "data"\n\n'
            f"{provider_lines(self.sandbox_url, VERIFICATION_LINES)}"
        )

    def __enter__(self) -> "DemoProcesses":
        journal = str(self.folder / "sandbox.jsonl")
        listen = self.sandbox_url.removeprefix("http://")
        try:
            self._start("sandbox", "sandbox", "--listen", listen, "--journal", journal)
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
        """The name of a process that has ended although it should stay."""
        return next((name for name, child in self._processes.items() if child.process.poll() is not None), None)

    def _start(self, name: str, *arguments: str, **how: Any) -> None:
        with self.logs[name].open("wb") as log:
            self._processes[name] = ChildProcess(*arguments, log=log, **how)

    def _configure_sandbox(self) -> None:
        """What an owner does once on TikTok's portal, and what would only keep somebody waiting here."""
        quick = {"processing_ticks": 1}
        # Somebody may like the demo so much that it runs all day.
        tiktok = {**quick, "posts_per_day": 10_000, "limits": {"video_init": 100, "content_init": 100}}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("x/settings", {"processing_ticks": 0}),
            ("pinterest/settings", quick),
            ("tiktok/settings", tiktok),
            ("tiktok/properties", {"prefix": f"{self.url}/storage/media/", **VERIFICATION}),
        ]
        with httpx2.Client(trust_env=False, timeout=30) as client:
            for path, body in calls:
                response = client.post(f"{self.sandbox_url}/_control/{path}", json=body)
                if response.status_code != 200 or response.json().get("verified") is False:
                    raise CommandError(
                        f"The sandbox refused {path}: {response.text[:200]}", f"Its log: {self.logs['sandbox']}"
                    )

    def _wait_for(self, name: str, url: str) -> None:
        with httpx2.Client(trust_env=False) as client:

            def answers() -> bool:
                try:
                    return client.get(url).status_code == 200
                except httpx2.TransportError:
                    return False

            if not _wait_until(lambda: answers() or self.exited() is not None) or self.exited():
                end = "\n".join(self.logs[name].read_text("utf-8", "replace").splitlines()[-15:])
                raise CommandError(
                    f"The {name} did not start. The end of its log:\n{end}",
                    f"The whole log: {self.logs[name]}",
                )


def _wait_until(condition: Callable[[], bool]) -> bool:
    """Return whether it became true in time."""
    pause = threading.Event()
    return any(condition() or pause.wait(POLL_SECONDS) for _ in range(int(START_SECONDS / POLL_SECONDS)))


def _free_port(usual: int) -> int:
    """Return the usual port if it is free, otherwise any, so that addresses stay the same."""
    for port in (usual, 0):
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(sock.getsockname()[1])
    raise CommandError("No port is free on 127.0.0.1.", "Try again in a while.")
