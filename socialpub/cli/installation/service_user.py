"""The user that the service runs as: no login, no home but the data folder, nothing else on the machine."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from socialpub.cli.installation.places import InstallationPlaces
from socialpub.cli.installation.systemctl import SYSTEM_PATH
from socialpub.core.errors import OperatorError


def exists(places: InstallationPlaces) -> bool:
    try:
        pwd.getpwnam(places.user)
    except KeyError:
        return False
    return True


def create(places: InstallationPlaces) -> None:
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


def identity(places: InstallationPlaces) -> dict[str, Any]:
    """Whom a process is started as, as `subprocess` takes it: the service's user with its groups alone."""
    entry = pwd.getpwnam(places.user)
    if entry.pw_uid == 0:
        raise OperatorError(f"{places.user} is root.", "Give the service a user of its own: --user socialpub")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "umask": 0o077}


@contextmanager
def acting(places: InstallationPlaces) -> Iterator[None]:
    """Have root open and make files as the service's user, so that all files in its data folder stay its own."""
    who, groups, umask = identity(places), os.getgroups(), os.umask(0o077)
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
