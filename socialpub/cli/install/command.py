"""`socialpub install-service`, `uninstall-service` and `go-back`."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from socialpub.cli import backup
from socialpub.cli.install import environment, files, installer
from socialpub.cli.install.files import DEFAULT_PLACES, InstallationPlaces, InstallationStep
from socialpub.cli.install.installer import Installer
from socialpub.cli.output import ask_to_continue, print_line, print_note, progress_bar
from socialpub.core import actor, commands, version
from socialpub.core.clock import SystemClock
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db.upgrade_backups import UpgradeBackup
from socialpub.ops.backup import rollback
from socialpub.ops.backup.rollback import Environment, Rollback

FOLDER = click.Path(readable=False, path_type=Path)  # `check` reports that root is needed


def places_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the places, which all commands of an installation share."""
    for name, parameter, usual, what in (
        (
            "--destdir",
            "destdir",
            None,
            "Write everything below DIR, for a package. Do not create a user or use systemd.",
        ),
        ("--user", "user", DEFAULT_PLACES.user, "The user that the service runs as."),
        ("--unit-dir", "units", DEFAULT_PLACES.units, "The folder of the units."),
        ("--command-dir", "commands", DEFAULT_PLACES.commands, "The folder of the command `socialpub`."),
        ("--data-dir", "data", DEFAULT_PLACES.data, "The data folder in a new configuration."),
        ("--config-dir", "configuration", DEFAULT_PLACES.configuration, "The folder of config.toml."),
        ("--program-dir", "programs", DEFAULT_PLACES.programs, "The folder of the programs."),
    ):
        kind = {"metavar": "NAME"} if name == "--user" else {"type": FOLDER, "metavar": "DIR"}
        command = click.option(name, parameter, default=usual, show_default=usual is not None, help=what, **kind)(
            command
        )
    return command


@click.command("install-service")
@click.option("--dry-run", is_flag=True, help="Only print the steps.")
@places_options
def install_service(dry_run: bool, destdir: Path | None, **where: Any) -> None:
    """Install this socialpub as a systemd service.

    To upgrade, run the command of a newer version. The configuration and the data stay unchanged.
    """
    os.umask(0o022)
    installation = Installer(InstallationPlaces(destdir=destdir and destdir.absolute(), **where))
    is_first = not installation.places.real(installation.places.config).exists()
    installation.check()
    _run_plan(installation.plan(), dry_run)
    for sentence in installation.notes:
        print_note()
        print_note(sentence)
    if not dry_run:
        _print_next_steps(installation, is_first)


@click.command("uninstall-service")
@click.option("--dry-run", is_flag=True, help="Only print the steps.")
@places_options
def uninstall_service(dry_run: bool, destdir: Path | None, **where: Any) -> None:
    """Stop the service and remove its units, programs and command. The configuration and the data stay."""
    places = InstallationPlaces(destdir=destdir and destdir.absolute(), **where).checked()
    if destdir is None:
        if os.geteuid() != 0:
            raise OperatorError("Only root can remove a service.", "Run the command with sudo.")
        installer.refuse_without_systemd()
    data = files.read_config(places).data_dir
    _run_plan(_removal_plan(places), dry_run)
    if dry_run:
        return
    print_note()
    print_note(
        f"The configuration in {places.configuration} and the data in {data}, including secret.key, were not removed."
    )
    remove = shlex.join(["sudo", "rm", "-r", str(places.configuration), str(data)])
    print_note(f"To remove them and the user permanently: {remove} && sudo userdel {places.user}")


def _removal_plan(places: InstallationPlaces) -> Iterator[InstallationStep]:
    names = [*files.unit_texts(places, Settings())]
    present = [name for name in names if places.real(places.units / name).exists()]
    started = [name for name in present if "/" not in name]
    if places.destdir is None and started:
        yield InstallationStep(
            f"Stop {', '.join(started)}", lambda: installer.run_systemctl("disable", "--now", *started)
        )
    for name in present:
        path = places.units / name
        yield InstallationStep(f"Remove {path}", places.real(path).unlink)
    drop_ins = places.real(places.units / files.ADDRESSES).parent
    if drop_ins.is_dir() and set(drop_ins.iterdir()) <= {places.real(places.units / files.ADDRESSES)}:
        yield InstallationStep(f"Remove {drop_ins}", drop_ins.rmdir)
    if places.destdir is None and present:
        yield InstallationStep("Reload the units in systemd", lambda: installer.run_systemctl("daemon-reload"))
    command = places.real(places.command)
    if command.exists() and not files.is_foreign_command(places):
        yield InstallationStep(f"Remove {places.command}", command.unlink)
    # The programs come last, because this program may be one of them.
    programs = places.real(places.programs)
    link, environments = places.real(places.environment), places.real(places.environments)
    if link.is_symlink():
        yield InstallationStep(f"Remove {places.environment}", link.unlink)
    if environments.is_dir():
        yield InstallationStep(f"Remove {places.environments}", lambda: shutil.rmtree(environments))
    if programs.is_dir() and set(programs.iterdir()) <= {link, environments}:
        yield InstallationStep(f"Remove {places.programs}", programs.rmdir)


def _run_plan(plan: Iterator[InstallationStep], dry_run: bool) -> None:
    for step in plan:
        print_line(step.sentence)
        if not dry_run:
            step.do()


def _print_next_steps(installation: Installer, is_first: bool) -> None:
    places = installation.places
    print_note()
    if installation.is_staged:
        print_note(
            "After unpacking the package, run this command. It creates the user and secret.key, and sets owners:"
        )
        print_note(f"    {places.program} install-service")
        return
    typed = files.typed_commands(places)
    others = [name for name in files.installed_units(places) if not name.endswith(".service")]
    start = (
        f"Start it: {shlex.join(['sudo', 'systemctl', 'enable', '--now', installer.WEB, installer.WORKER, *others])}"
    )
    if not is_first:
        if not installer.is_active(installer.WEB):
            print_note(f"The service is not running. {start}")
        print_note(f"Done. To check the installation: {typed.line('doctor')}")
        return
    print_note("Next:")
    print_note(f"1. Fill in base_url and the apps of your networks: sudoedit {places.config}")
    print_note(f"2. {start}")
    print_note(f"3. Set the dashboard's password: {typed.line('admin', 'set-password')}")
    print_note(f"Keep a copy of {places.data / 'secret.key'} elsewhere: without it, stored tokens cannot be read.")


# --- going back -------------------------------------------------------------------------------------------------------
# Every check comes before the services stop. The database and the environment are replaced in two atomic steps. At the
# end, both are of the previous version or both are of the current version.

BACKUP, TIMER = "socialpub-backup.service", "socialpub-backup.timer"
UNITS = (TIMER, installer.SOCKET, installer.WEB, installer.WORKER, BACKUP)
"""The units in the order of stopping, in which no request and no timer starts the current version again."""


@click.command("go-back")
@click.option("--dry-run", is_flag=True, help="Only print the steps.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@places_options
def go_back(dry_run: bool, yes: bool, destdir: Path | None, **where: Any) -> None:
    """Undo an upgrade of the service: return to the version before the upgrade.

    If that version does not know the current database, the backup from before the upgrade replaces it, and publishing
    is paused. The current database is kept.
    """
    if destdir is not None:
        raise OperatorError("A package does not have a previous version.", "Omit --destdir.")
    os.umask(0o022)
    rollback_plan = ServiceRollback.prepare(InstallationPlaces(**where).checked())
    steps = list(rollback_plan.plan())
    print_note(rollback_plan.summary)
    for step in steps:
        print_line(step.sentence)
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise OperatorError("Nothing was changed: the confirmation needs a terminal.", "Add --yes.")
        ask_to_continue(f"Go back from {version.current()} to {rollback_plan.former.version}?")
    rollback_plan.run(steps)


@dataclass
class ServiceRollback:
    """The return to the previous version on this machine, and its progress."""

    places: InstallationPlaces
    settings: Settings
    former: Environment
    backup: UpgradeBackup | None
    """The backup that replaces the database. None: the previous version works with the current database."""
    running: list[str]
    done: Rollback | None = None
    is_switched: bool = False
    """Whether the previous environment is in use again."""

    @classmethod
    def prepare(cls, places: InstallationPlaces) -> "ServiceRollback":
        """Check everything. Raises OperatorError if the rollback is impossible."""
        if os.geteuid() != 0:
            raise OperatorError("Only root can go back to an earlier version.", "Run the command with sudo.")
        installer.refuse_without_systemd()
        if environment.in_use(places) is None:
            raise OperatorError(
                f"No service is installed in {places.programs}.",
                f"Roll back by hand. To read how, run `{commands.line('manual', 'upgrading')}`.",
            )
        settings = files.read_config(places)
        places = places.with_data(settings.data_dir).checked()
        former = rollback.find_former(places.environment.resolve())
        if former is None:
            raise OperatorError(
                f"{places.environments} contains no earlier version of socialpub.",
                f"Roll back by hand. To read how, run `{commands.line('manual', 'upgrading')}`.",
            )
        _refuse_configuration(places, former)
        with installer.acting_as_user(places):
            backup_needed = rollback.backup_needed(former, settings)
        return cls(places, settings, former, backup_needed, [unit for unit in UNITS if installer.is_active(unit)])

    @property
    def summary(self) -> str:
        if self.backup is None:
            return f"{self.former.version} works with the current database. Every post stays."
        return (
            f"{self.former.version} does not know the current database. The backup from before the upgrade replaces "
            f"the database: {self.backup.path}. Posts accepted since then are only in the current "
            "database, which is kept."
        )

    def plan(self) -> Iterator[InstallationStep]:
        places, former = self.places, self.former
        if self.running:
            yield InstallationStep(f"Stop {', '.join(self.running)}", partial(_each, "stop", self.running))
        if self.backup is not None:
            yield InstallationStep(
                f"Replace {self.settings.database_file} with {self.backup.path}, and keep the replaced database",
                self._roll_back,
            )
        yield InstallationStep(f"Link {places.environment} to {former.folder}", self._switch)
        gone = [name for name in files.installed_units(places) if name not in former.units]
        if gone:
            yield InstallationStep(
                f"Remove {', '.join(gone)}, which {former.version} does not have", partial(_remove, places, gone)
            )
        yield InstallationStep(
            f"Write the units and the command of {former.version} with its own install-service", self._install
        )
        again = [unit for unit in reversed(self.running) if unit not in gone and unit != BACKUP]
        if again:
            yield InstallationStep(f"Start {', '.join(again)}", partial(_each, "start", again))

    def run(self, steps: list[InstallationStep]) -> None:
        """Do every step. After a failure before the first change, the current version runs again."""
        try:
            for step in steps:
                step.do()
        except OperatorError as error:
            raise self._explain_failure(error) from error
        self._print_result()

    # --- steps -------------------------------------------------------------------------------------------------------

    def _roll_back(self) -> None:
        assert self.backup is not None
        with installer.acting_as_user(self.places), progress_bar(), actor.act_as(actor.COMMAND):
            self.done = rollback.roll_back(self.backup.path, self.settings, SystemClock())

    def _switch(self) -> None:
        environment.put_in_place(self.places, self.former.folder)
        self.is_switched = True

    def _install(self) -> None:
        places = self.places
        done = subprocess.run(  # noqa: S603
            [self.former.program, "install-service", "--user", places.user, "--unit-dir", places.units,
             "--command-dir", places.commands, "--data-dir", places.data, "--config-dir", places.configuration,
             "--program-dir", places.programs],
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        if done.returncode:
            raise OperatorError(f"{self.former.version} could not write its units: {done.stderr.strip()}")
        installer.run_systemctl("daemon-reload")

    # --- messages ----------------------------------------------------------------------------------------------------

    def _explain_failure(self, error: OperatorError) -> OperatorError:
        if self.is_switched:
            hint = f"The previous version is in place. Run `sudo {self.former.program} install-service` again."
            return OperatorError(error.message, f"{error.hint or ''} {hint}".strip())
        if self.done is not None:
            return OperatorError(
                f"The database is replaced, but the previous version is not in place yet. {error.message}",
                "Run the command again to continue.",
            )
        _each("start", [unit for unit in reversed(self.running) if unit != BACKUP])
        return OperatorError(
            f"{error.message} Nothing was changed, and the current version is running as before.", error.hint
        )

    def _print_result(self) -> None:
        print_note()
        print_note(f"socialpub {self.former.version} is in use again.")
        if self.done is None:
            print_note("Every post is unchanged.")
        else:
            backup.describe_rollback(self.done)
            print_note("Publishing is paused. The API works, but nothing is published. Next:")
            backup.print_steps_after_rollback(1)
        if not self.running:
            print_note(f"The service was not running before. {files.typed_commands(self.places).start()}.")


def _refuse_configuration(places: InstallationPlaces, former: Environment) -> None:
    """Raise OperatorError if the previous version's own program refuses the configuration."""
    identity = installer.user_identity(places)
    refusal = files.config_refusal(former.program, places.config, identity)
    if not refusal:
        return
    if files.config_refusal(places.program, places.config, identity):
        print_note(f"Only the services can read the configuration: {refusal}")
        return
    raise OperatorError(
        f"Version {former.version} does not accept the configuration, so nothing was changed. {refusal}",
        f"Remove these keys from {places.config}. Then run the command again.",
    )


def _remove(places: InstallationPlaces, names: list[str]) -> None:
    installer.run_systemctl("disable", "--now", *names)
    for name in names:
        (places.units / name).unlink()


def _each(verb: str, units: list[str]) -> None:
    for unit in units:
        installer.run_systemctl(verb, unit)
