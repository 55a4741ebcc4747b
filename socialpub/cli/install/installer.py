"""Installing and upgrading the service.

The installer does not ask questions or overwrite files of the owner. A second run changes only differences. Every step
that can fail comes before the version in use is changed. The services stop before the new version starts, so two
versions never share a database. The socket stays open, and callers wait.
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
    places: InstallationPlaces
    notes: list[str] = field(default_factory=list)
    built: Path | None = None

    @property
    def is_staged(self) -> bool:
        return self.places.destdir is not None

    def check(self) -> None:
        """Raise OperatorError if the service cannot be installed."""
        self.places.checked()
        if self.is_staged:
            return
        if os.geteuid() != 0:
            raise OperatorError(
                "Only root can install a service.", f"Run the command with sudo: `{commands.line('install-service')}`"
            )
        refuse_without_systemd()
        environment.refuse_checkout(self.places)
        if user_exists(self.places):
            user_identity(self.places)

    def plan(self) -> Iterator[InstallationStep]:
        """Yield the steps. Each step is planned after the steps before it were done or shown."""
        places = self.places
        data = files.read_config(places).data_dir
        if places.data not in (DEFAULT_PLACES.data, data):
            raise OperatorError(
                f"{places.config} has data_dir = {str(data)!r}, but --data-dir is {str(places.data)!r}.",
                "Omit --data-dir, or move the data and change data_dir in the configuration first.",
            )
        self.places = places = places.with_data(data).checked()
        if not self.is_staged and not user_exists(places):
            yield InstallationStep(f"Create the system user {places.user}", lambda: create_user(places))
        yield from self._folders_and_configuration()
        former = environment.in_use(places)
        if environment.is_running(places):
            self.notes.append(
                f"This is the installed socialpub {version.current()}, so its programs are unchanged. To upgrade, run "
                "install-service of the newer version by its path."
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
                yield InstallationStep("Remove versions before the previous version", remove)

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
            text = f"Create {places.data}, which only the service may read"
            yield InstallationStep(text, lambda: files.make_folder(data, 0o700, self._owner()))
        elif not self.is_staged:
            yield from self._fix_owners(config, data)

    def _environment(self) -> Iterator[InstallationStep]:
        places, python = self.places, environment.choose_interpreter()
        with_it = f"with {python.executable}" if python.copied_from is None else f"with a copy of {python.copied_from}"
        if self.is_staged and python.copied_from is not None:
            raise OperatorError(
                f"{python.copied_from} is in a home folder, and a package cannot include it.",
                "Build the package with the system's Python: make PYTHON=/usr/bin/python3 clean install",
            )

        def build() -> None:
            self.built = environment.build(places, python)
            environment.check(places, self.built, self._identity())
            self._refuse_configuration(self.built)

        def put() -> None:
            assert self.built is not None
            environment.put_in_place(places, self.built)

        yield InstallationStep(
            f"Copy socialpub {version.current()} to {places.environments}, {with_it}, and test the copy", build
        )
        yield InstallationStep(f"Link {places.environment} to this version", put)

    def _secret(self) -> Iterator[InstallationStep]:
        places = self.places
        key, database = places.data / "secret.key", places.data / "socialpub.db"
        if key.exists():
            return
        if database.exists():
            self.notes.append(
                f"{key} is missing, but a database exists. Put the original key there. If the key is permanently lost, "
                f"run {files.typed_commands(places).line('init', '--new-secret')}"
            )
            return
        yield InstallationStep(f"Create {key}", lambda: files.make_secret(places, places.program, self._identity()))

    def _command(self) -> Iterator[InstallationStep]:
        places = self.places
        if files.is_foreign_command(places):
            self.notes.append(
                f"{places.command} belongs to another program and is unchanged. Run the service's commands like this: "
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
                    f"{edited} overrides the unit of this version. If this is not intended, run `sudo rm {edited} && "
                    f"sudo systemctl daemon-reload`. {restart}."
                )
        running = [unit for unit in (SOCKET, WEB, WORKER) if is_active(unit)]
        if renewed:
            yield InstallationStep("Reload the units in systemd", partial(run_systemctl, "daemon-reload"))
        # Only the new units of this version, because the owner may have disabled others.
        added = [name for name in fresh if name.endswith((".socket", ".timer"))]
        if added and is_enabled(WEB):
            yield InstallationStep(f"Enable {', '.join(added)}", partial(run_systemctl, "enable", *added))
        if running:
            added = added if WEB in running else []
            renew_socket = bool(renewed & {files.SOCKET, files.ADDRESSES})
            again = partial(restart_units, running, added, renew_socket)
            yield InstallationStep(f"Restart {', '.join(running)}", again)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _owner(self, of_root: bool = False) -> tuple[int, int] | None:
        if self.is_staged:
            return None
        entry = pwd.getpwnam(self.places.user)
        return (0 if of_root else entry.pw_uid, entry.pw_gid)

    def _identity(self) -> dict[str, object]:
        return {} if self.is_staged else user_identity(self.places)

    def _refuse_configuration(self, built: Path) -> None:
        """Raise OperatorError if the version in use accepts the configuration and the new version does not."""
        if self.is_staged:
            return
        places, identity = self.places, self._identity()
        refusal = files.config_refusal(built / "bin" / "socialpub", places.config, identity)
        if not refusal:
            return
        if environment.in_use(places) and not files.config_refusal(places.program, places.config, identity):
            raise OperatorError(
                f"This version does not accept the configuration. The previous version continues to run. {refusal}",
                f"Correct {places.config}, and run the command again.",
            )
        self.notes.append(f"Only the services can read the configuration: {refusal}")

    def _fix_owners(self, config: Path, data: Path) -> Iterator[InstallationStep]:
        """Yield steps for the owners of files that a package or another user created."""
        user = self.places.user
        uid, gid = self._owner() or (0, 0)
        if config.exists() and not _can_read(config, uid, gid):
            for path, mode in ((config.parent, 0o750), (config, 0o640)):
                give = partial(files.set_owner, path, mode, (0, gid))
                yield InstallationStep(f"Make {path} readable for {user}", give)
        if data.stat().st_uid == uid:
            return
        if any(data.iterdir()):
            self.notes.append(f"{data} is not owned by {user}. Run `sudo chown -R {user}: {data}`.")
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
    if _find_systemctl() is None or not _BOOTED.is_dir():
        raise OperatorError(
            "A service needs systemd, which is not running on this machine.",
            "Use the container (systemd/container/ of the source), or run "
            f"`{commands.line('serve')}` with your own supervisor. To build a package, add --destdir DIR.",
        )


def run_systemctl(*arguments: str) -> None:
    """Run systemctl. Raises OperatorError."""
    if (done := _ask_systemctl(*arguments)).returncode:
        raise OperatorError(
            f"systemctl {' '.join(arguments)} failed: {done.stderr.strip() or done.returncode}",
            "Read the log: sudo journalctl --unit 'socialpub-*' --since -5min. If the address is already in use, stop "
            "the other program or change `listen`. Then run the command again.",
        )


def is_active(unit: str) -> bool:
    return _ask_systemctl("is-active", "--quiet", unit).returncode == 0


def is_enabled(unit: str) -> bool:
    return _ask_systemctl("is-enabled", "--quiet", unit).returncode == 0


def restart_units(running: list[str], added: list[str], renew_socket: bool) -> None:
    """Restart the units that ran, and start the units that the new version added. The socket closes only if it changed.

    If a unit cannot start, the other units still start.
    """
    # The worker stops first, because a call that makes a post public may be in progress. Web still responds.
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
    """Return the system's systemctl, because another user may have changed root's PATH."""
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
    hint = f"Create a system user {places.user} with a group of the same name, and run the command again."
    if program is None:
        raise OperatorError(f"The user {places.user} does not exist, and useradd is missing.", hint)
    made = subprocess.run(  # noqa: S603
        [program, "--system", "--user-group", "--no-create-home", "--home-dir", str(places.data),
         "--shell", "/usr/sbin/nologin", "--comment", "socialpub", places.user],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise OperatorError(f"The user {places.user} could not be created: {made.stderr.strip()}", hint)


def user_identity(places: InstallationPlaces) -> dict[str, Any]:
    """Return the service's user and its one group, as arguments of `subprocess`."""
    entry = pwd.getpwnam(places.user)
    if entry.pw_uid == 0:
        raise OperatorError(f"{places.user} is root.", "Choose another user for the service: --user socialpub")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "umask": 0o077}


@contextmanager
def acting_as_user(places: InstallationPlaces) -> Iterator[None]:
    """Open and create files as the service's user, so that this user owns all files in the data folder."""
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
