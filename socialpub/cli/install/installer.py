"""From an installed package to a service, and from one version of the service to the next.

It asks nothing, overwrites no file of the owner, and can run again at any time: it changes only what differs. The order
matters: everything that can fail does so before the version in use is touched. Services stop before those of the new
version start: two versions never share a database. The socket stays open and keeps callers waiting.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from socialpub.cli.install import environment, files
from socialpub.cli.install.files import DEFAULT_PLACES, InstallationPlaces, InstallationStep
from socialpub.core import commands, version
from socialpub.core.errors import OperatorError
from socialpub.core.settings import template


@dataclass
class Installer:
    """`notes` are shown to the owner at the end."""

    places: InstallationPlaces
    notes: list[str] = field(default_factory=list)
    built: Path | None = None

    @property
    def is_staged(self) -> bool:
        return self.places.destdir is not None

    def check(self) -> None:
        """Raise OperatorError if no service can be installed."""
        self.places.checked()
        if self.is_staged:
            return
        if os.geteuid() != 0:
            raise OperatorError(
                "Only root can make a service of this machine.",
                f"Run it with sudo, by its whole path: `{commands.line('install-service')}`",
            )
        refuse_without_systemd()
        environment.refuse_checkout(self.places)
        if user_exists(self.places):
            user_identity(self.places)

    def plan(self) -> Iterator[InstallationStep]:
        """Yield the steps. Each is planned after those before it, whether they were done or only shown."""
        places = self.places
        data = files.read_config(places).data_dir
        if places.data not in (DEFAULT_PLACES.data, data):
            raise OperatorError(
                f"{places.config} says data_dir = {str(data)!r}, and not {str(places.data)!r}.",
                "Leave --data-dir out, or move the data and change data_dir there first.",
            )
        self.places = places = places.with_data(data).checked()
        if not self.is_staged and not user_exists(places):
            yield InstallationStep(f"Make the system user {places.user}", lambda: create_user(places))
        yield from self._folders_and_configuration()
        former = environment.in_use(places)
        if environment.is_running(places):
            self.notes.append(
                f"This is the installed socialpub {version.current()} itself, so its programs stay as they are. To "
                "upgrade, run install-service of the newer one, by its path."
            )
        else:
            yield from self._environment()
        if not self.is_staged:
            yield from self._secret()
        yield from self._command()
        texts = files.unit_texts(places, files.read_config(places))
        real = {name: places.real(places.units / name) for name in texts}
        fresh = [name for name in texts if not real[name].exists()]
        renewed = {name for name, text in texts.items() if name in fresh or real[name].read_text() != text}
        for name, text in texts.items():
            yield from files.file_step(real[name], places.units / name, text, 0o644, None)
        if not self.is_staged:
            yield from self._start(list(texts), renewed, fresh)
            if former is not None and self.built is not None:
                kept = {former, self.built.name}
                remove = partial(environment.remove_others, places, kept)
                yield InstallationStep("Remove versions before the former one", remove)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _folders_and_configuration(self) -> Iterator[InstallationStep]:
        places = self.places
        config, data = places.real(places.config), places.real(places.data)
        if not config.exists():

            def write() -> None:
                files.make_folder(config.parent, 0o750, self._owner(of_root=True))
                config.touch(0o600)
                config.write_text(template.config_for(places.data))
                files.set_owner(config, 0o640, self._owner(of_root=True))

            yield InstallationStep(f"Write {places.config}", write)
        if not data.exists():
            text = f"Make {places.data}, which only the service may read"
            yield InstallationStep(text, lambda: files.make_folder(data, 0o700, self._owner()))
        elif not self.is_staged:
            yield from self._give_away(config, data)

    def _environment(self) -> Iterator[InstallationStep]:
        places, python = self.places, environment.choose_interpreter()
        with_it = f"with {python.executable}" if python.copied_from is None else f"with a copy of {python.copied_from}"
        if self.is_staged and python.copied_from is not None:
            raise OperatorError(
                f"{python.copied_from} lies in a home folder, and a package cannot bring it along.",
                "Put the package together with the system's Python: make PYTHON=/usr/bin/python3 clean install",
            )

        def build() -> None:
            self.built = environment.build(places, python)
            environment.check(places, self.built, self._identity())
            self._refuse_configuration(self.built)

        def put() -> None:
            assert self.built is not None
            environment.put_in_place(places, self.built)

        yield InstallationStep(
            f"Copy socialpub {version.current()} to {places.environments}, {with_it}, and try it", build
        )
        yield InstallationStep(f"Have {places.environment} lead to it", put)

    def _secret(self) -> Iterator[InstallationStep]:
        places = self.places
        key, database = places.data / "secret.key", places.data / "socialpub.db"
        if key.exists():
            return
        if database.exists():
            self.notes.append(
                f"{key} is missing beside a database. Put the original there. If it is lost for good: "
                f"{files.typed_commands(places).line('init', '--new-secret')}"
            )
            return
        yield InstallationStep(f"Make {key}", lambda: files.make_secret(places, places.program, self._identity()))

    def _command(self) -> Iterator[InstallationStep]:
        places = self.places
        if files.is_foreign_command(places):
            self.notes.append(
                f"{places.command} is another program's and stays. Type the service's commands like this one: "
                f"{files.typed_commands(places).line('doctor')}"
            )
            return
        text = files.script_text(places)
        yield from files.file_step(places.real(places.command), places.command, text, 0o755, None)

    def _start(self, names: list[str], renewed: set[str], fresh: list[str]) -> Iterator[InstallationStep]:
        for name in names:
            edited = Path("/etc/systemd/system", name)
            if edited.is_file() and self.places.units != edited.parent:
                restart = files.typed_commands(self.places).restart(name)
                self.notes.append(
                    f"{edited} wins over the unit of this version. If that is not intended: `sudo rm {edited} && sudo "
                    f"systemctl daemon-reload`. {restart}."
                )
        running = [unit for unit in (SOCKET, WEB, WORKER) if is_active(unit)]
        if renewed:
            yield InstallationStep("Have systemd read the units", partial(run_systemctl, "daemon-reload"))
        # Only the new units of this version: the owner may have disabled others.
        added = [name for name in fresh if name.endswith((".socket", ".timer"))]
        if added and is_enabled(WEB):
            yield InstallationStep(f"Enable {', '.join(added)}", partial(run_systemctl, "enable", *added))
        if running:
            added = added if WEB in running else []
            renew_socket = bool(renewed & {files.SOCKET, files.ADDRESSES})
            again = partial(restart_units, running, added, renew_socket)
            yield InstallationStep(f"Start again what runs: {', '.join(running)}", again)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _owner(self, of_root: bool = False) -> tuple[int, int] | None:
        if self.is_staged:
            return None
        entry = pwd.getpwnam(self.places.user)
        return (0 if of_root else entry.pw_uid, entry.pw_gid)

    def _identity(self) -> dict[str, object]:
        return {} if self.is_staged else user_identity(self.places)

    def _refuse_configuration(self, built: Path) -> None:
        """Raise OperatorError if the version in use accepts the configuration and the new one does not."""
        if self.is_staged:
            return
        places, identity = self.places, self._identity()
        said = files.config_refusal(built / "bin" / "socialpub", places.config, identity)
        if not said:
            return
        if environment.in_use(places) and not files.config_refusal(places.program, places.config, identity):
            raise OperatorError(
                f"This version does not accept the configuration; the former one goes on. {said}",
                f"Correct {places.config}, and run this again.",
            )
        self.notes.append(f"The configuration cannot be read outside of the services: {said}")

    def _give_away(self, config: Path, data: Path) -> Iterator[InstallationStep]:
        """Yield steps for the owners of files that a package or another user created."""
        user = self.places.user
        uid, gid = self._owner() or (0, 0)
        if config.exists() and not _can_read(config, uid, gid):
            for path, mode in ((config.parent, 0o750), (config, 0o640)):
                give = partial(files.set_owner, path, mode, (0, gid))
                yield InstallationStep(f"Have {user} read {path}", give)
        if data.stat().st_uid == uid:
            return
        if any(data.iterdir()):
            self.notes.append(f"{data} is not {user}'s. Give it to the service: `sudo chown -R {user}: {data}`")
        else:
            yield InstallationStep(f"Give {data} to {user}", partial(files.set_owner, data, 0o700, (uid, gid)))


def _can_read(path: Path, uid: int, gid: int) -> bool:
    found = path.stat()
    bit = 0o400 if found.st_uid == uid else 0o040 if found.st_gid == gid else 0o004
    return bool(found.st_mode & bit)


# --- systemd ----------------------------------------------------------------------------------------------------------

WORKER, WEB, SOCKET = "socialpub-worker.service", "socialpub-web.service", "socialpub-web.socket"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED = Path("/run/systemd/system")


def refuse_without_systemd() -> None:
    """Raise OperatorError if systemd does not run."""
    if _find_systemctl() is None or not _BOOTED.is_dir():
        raise OperatorError(
            "systemd does not run on this machine, and a service is one of its units.",
            "Use the container (systemd/container/ of the source), or have your own supervisor run "
            f"`{commands.line('serve')}`. To put a package together: --destdir DIR",
        )


def run_systemctl(*arguments: str) -> None:
    """Run systemctl. Raise OperatorError."""
    if (done := _ask_systemctl(*arguments)).returncode:
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
    hint = f"Make a system user {places.user} with a group of the same name, and run this again."
    if program is None:
        raise OperatorError(f"There is no user {places.user}, and no useradd to make one.", hint)
    made = subprocess.run(  # noqa: S603
        [program, "--system", "--user-group", "--no-create-home", "--home-dir", str(places.data),
         "--shell", "/usr/sbin/nologin", "--comment", "socialpub", places.user],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise OperatorError(f"The user {places.user} could not be made: {made.stderr.strip()}", hint)


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
