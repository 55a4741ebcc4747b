"""From an installed package to a service, and from one version of the service to the next.

It asks nothing, overwrites no file of the owner, and can run again at any time: it changes only what differs. The order
matters: everything that can fail does so before the version in use is touched.
"""

import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from socialpub.cli.install import environment, files, machine
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
        machine.refuse_without_systemd()
        environment.refuse_checkout(self.places)
        if machine.user_exists(self.places):
            machine.user_identity(self.places)

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
        if not self.is_staged and not machine.user_exists(places):
            yield InstallationStep(f"Make the system user {places.user}", lambda: machine.create_user(places))
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
        running = [unit for unit in (machine.SOCKET, machine.WEB, machine.WORKER) if machine.is_active(unit)]
        if renewed:
            yield InstallationStep("Have systemd read the units", partial(machine.run_systemctl, "daemon-reload"))
        # Only the new units of this version: the owner may have disabled others.
        added = [name for name in fresh if name.endswith((".socket", ".timer"))]
        if added and machine.is_enabled(machine.WEB):
            yield InstallationStep(f"Enable {', '.join(added)}", partial(machine.run_systemctl, "enable", *added))
        if running:
            added = added if machine.WEB in running else []
            renew_socket = bool(renewed & {files.SOCKET, files.ADDRESSES})
            again = partial(machine.restart_units, running, added, renew_socket)
            yield InstallationStep(f"Start again what runs: {', '.join(running)}", again)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _owner(self, of_root: bool = False) -> tuple[int, int] | None:
        if self.is_staged:
            return None
        entry = pwd.getpwnam(self.places.user)
        return (0 if of_root else entry.pw_uid, entry.pw_gid)

    def _identity(self) -> dict[str, object]:
        return {} if self.is_staged else machine.user_identity(self.places)

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
