"""The machine of a service: systemd, and the user that the service runs as.

Services stop before those of the new version start: two versions never share a database. The socket stays open and
keeps callers waiting.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from socialpub.cli.install.files import InstallationPlaces
from socialpub.core import commands
from socialpub.core.errors import OperatorError

WORKER, WEB, SOCKET = "socialpub-worker.service", "socialpub-web.service", "socialpub-web.socket"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED = Path("/run/systemd/system")


def refuse_without_systemd() -> None:
    """Raise OperatorError if systemd does not run."""
    if _find_systemctl() is None or not _BOOTED.is_dir():
        raise OperatorError(
            "systemd does not run on this machine, and a service is one of its units.",
            "Use the container (systemd/container/ of the source), or have your own supervisor run "
            f"`{commands.line('serve')}`. "
            "To put a package together: --destdir DIR",
        )


def run_systemctl(*arguments: str) -> None:
    """Run systemctl. Raise OperatorError."""
    done = _ask_systemctl(*arguments)
    if done.returncode:
        raise OperatorError(
            f"systemctl {' '.join(arguments)} failed: {done.stderr.strip() or done.returncode}",
            "See what the units say: sudo journalctl --unit 'socialpub-*' --since -5min. If an address is in use "
            "already, stop what has it, or change `listen`; then run this again.",
        )


def is_active(unit: str) -> bool:
    return _ask_systemctl("is-active", "--quiet", unit).returncode == 0


def is_enabled(unit: str) -> bool:
    return _ask_systemctl("is-enabled", "--quiet", unit).returncode == 0


def restart_units(running: list[str], added: list[str], renew_socket: bool) -> None:
    """Restart the units that ran, and start those that the new version added. The socket closes only if it changed.

    A unit that cannot start, such as a socket whose port is in use, does not keep the others stopped.
    """
    # The worker first: it may be in a call that makes a post public. Until then, web still responds.
    for unit in (WORKER, WEB):
        if unit in running:
            run_systemctl("stop", unit)
    begun = [("start", unit) for unit in (*added, WEB, WORKER) if unit in running or unit in added]
    if SOCKET in running and renew_socket:
        begun.insert(0, ("restart", SOCKET))
    failures = []
    for verb, unit in begun:
        try:
            run_systemctl(verb, unit)
        except OperatorError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _ask_systemctl(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = _find_systemctl() or "/usr/bin/systemctl"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def _find_systemctl() -> str | None:
    """Return the system's own: another user may have changed root's PATH."""
    return shutil.which("systemctl", path=SYSTEM_PATH)


# --- the service's user -----------------------------------------------------------------------------------------------


def user_exists(places: InstallationPlaces) -> bool:
    try:
        pwd.getpwnam(places.user)
    except KeyError:
        return False
    return True


def create_user(places: InstallationPlaces) -> None:
    program = shutil.which("useradd", path=SYSTEM_PATH)
    if program is None:
        raise OperatorError(
            f"There is no user {places.user}, and no useradd to make one.",
            f"Make a system user {places.user} with a group of the same name, and run this again.",
        )
    made = subprocess.run(  # noqa: S603
        [program, "--system", "--user-group", "--no-create-home", "--home-dir", str(places.data),
         "--shell", "/usr/sbin/nologin", "--comment", "socialpub", places.user],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise OperatorError(
            f"The user {places.user} could not be made: {made.stderr.strip()}",
            f"Make a system user {places.user} with a group of the same name, and run this again.",
        )


def user_identity(places: InstallationPlaces) -> dict[str, Any]:
    """Return the service's user and its one group, as arguments of `subprocess`."""
    entry = pwd.getpwnam(places.user)
    if entry.pw_uid == 0:
        raise OperatorError(f"{places.user} is root.", "Give the service a user of its own: --user socialpub")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "umask": 0o077}


@contextmanager
def acting_as_user(places: InstallationPlaces) -> Iterator[None]:
    """Open and create files as the service's user, so that it owns all files in its data folder."""
    who, groups, umask = user_identity(places), os.getgroups(), os.umask(0o077)
    os.setgroups([])
    os.setegid(who["group"])
    os.seteuid(who["user"])
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        os.umask(umask)
