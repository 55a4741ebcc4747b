"""What systemd is told. Services are stopped before the new version's are started: two versions never share a database,
and a socket that stays open keeps callers waiting meanwhile, instead of refusing them."""

import shutil
import subprocess
from pathlib import Path

from socialpub.core import commands
from socialpub.core.errors import OperatorError

WORKER, WEB, SOCKET = "socialpub-worker.service", "socialpub-web.service", "socialpub-web.socket"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED = Path("/run/systemd/system")


def refuse_without() -> None:
    """Raises OperatorError where systemd does not run."""
    if _program() is None or not _BOOTED.is_dir():
        raise OperatorError(
            "systemd does not run on this machine, and a service is one of its units.",
            "Use the container (systemd/container/ of the source), or have your own supervisor run "
            f"`{commands.line('serve')}`. "
            "To put a package together: --destdir DIR",
        )


def run(*arguments: str) -> None:
    """Raises OperatorError."""
    done = _ask(*arguments)
    if done.returncode:
        raise OperatorError(
            f"systemctl {' '.join(arguments)} failed: {done.stderr.strip() or done.returncode}",
            "See what the units say: sudo journalctl --unit 'socialpub-*' --since -5min. If an address is in use "
            "already, stop what has it, or change `listen`; then run this again.",
        )


def is_active(unit: str) -> bool:
    return _ask("is-active", "--quiet", unit).returncode == 0


def is_enabled(unit: str) -> bool:
    return _ask("is-enabled", "--quiet", unit).returncode == 0


def restart(running: list[str], added: list[str], renew_socket: bool) -> None:
    """Have those that ran run the new version, and what it added; a socket is only closed when it became another.

    Whatever cannot be started, such as a socket whose port is another program's, keeps no other one stopped.
    """
    # The worker first: it may be in a call that makes a post public, and web answers until it has ended.
    for unit in (WORKER, WEB):
        if unit in running:
            run("stop", unit)
    begun = [("start", unit) for unit in (*added, WEB, WORKER) if unit in running or unit in added]
    if SOCKET in running and renew_socket:
        begun.insert(0, ("restart", SOCKET))
    failures = []
    for verb, unit in begun:
        try:
            run(verb, unit)
        except OperatorError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _ask(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = _program() or "/usr/bin/systemctl"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def _program() -> str | None:
    """Not the one that root's PATH, which may be somebody else's, leads to."""
    return shutil.which("systemctl", path=SYSTEM_PATH)
