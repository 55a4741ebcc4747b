"""`socialpub go-back`: undo an upgrade, with the former environment and the backup from before the upgrade.

Everything that can refuse does so before anything is stopped. The database changes in one moment, and the environment
in another. Both are the former ones at the end, or both are the present ones.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from socialpub.cli import backup
from socialpub.cli.backup import progress_bar
from socialpub.cli.install import environment, files, machine
from socialpub.cli.install.command import places_options
from socialpub.cli.install.files import InstallationPlaces, InstallationStep
from socialpub.cli.output import ask_to_continue, print_line, print_note
from socialpub.core import actor, version
from socialpub.core.clock import SystemClock
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db.upgrade_backups import UpgradeBackup
from socialpub.ops.backup import rollback
from socialpub.ops.backup.rollback import Environment, Rollback

BACKUP, TIMER = "socialpub-backup.service", "socialpub-backup.timer"
UNITS = (TIMER, machine.SOCKET, machine.WEB, machine.WORKER, BACKUP)
"""In the order in which they stop. Otherwise a request or the timer would start the present version again."""


@click.command("go-back")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@places_options
def go_back(dry_run: bool, yes: bool, destdir: Path | None, **where: Any) -> None:
    """Undo an upgrade of the service: start the version that ran before it again.

    If that version does not know the present database, the backup from before the upgrade takes its place, and
    publishing is paused. The present database is kept.
    """
    if destdir is not None:
        raise OperatorError("A package has no former version.", "Leave --destdir out.")
    os.umask(0o022)
    way = WayBack.find(InstallationPlaces(**where).checked())
    steps = list(way.plan())
    print_note(way.summary)
    for step in steps:
        print_line(step.sentence)
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise OperatorError("Nothing was changed: this command asks first, and there is no terminal.", "Add --yes.")
        ask_to_continue(f"Go back from {version.current()} to {way.former.version}?")
    way.go(steps)


@dataclass
class WayBack:
    """The steps back on this machine, and how many are done."""

    places: InstallationPlaces
    settings: Settings
    former: Environment
    copy: UpgradeBackup | None
    """The backup that takes the place of the database. None: the former version works with the present one."""
    running: list[str]
    done: Rollback | None = None
    is_switched: bool = False
    """Whether the former environment is in use again."""

    @classmethod
    def find(cls, places: InstallationPlaces) -> "WayBack":
        """Return the way back. Raise OperatorError with the reason if there is none."""
        if os.geteuid() != 0:
            raise OperatorError("Only root can go back to a former version of the service.", "Run it with sudo.")
        machine.refuse_without_systemd()
        if environment.in_use(places) is None:
            raise OperatorError(
                f"No service is installed in {places.programs}.",
                "Restore the backup from before the upgrade and install the former version yourself: see “Going back” "
                "in the README.",
            )
        settings = files.read_config(places)
        places = places.with_data(settings.data_dir).checked()
        former = rollback.find_former(places.environment.resolve())
        if former is None:
            raise OperatorError(
                f"No former version is left in {places.environments}.",
                "Restore the backup from before the upgrade and install the former version again: see “Going back” in "
                "the README.",
            )
        _refuse_configuration(places, former)
        with machine.acting_as_user(places):
            copy = rollback.backup_needed(former, settings)
        return cls(places, settings, former, copy, [unit for unit in UNITS if machine.is_active(unit)])

    @property
    def summary(self) -> str:
        if self.copy is None:
            return f"{self.former.version} works with the present database: every post stays."
        return (
            f"{self.former.version} does not know the present database. The backup from before the upgrade takes its "
            f"place: {self.copy.path}. Posts that were accepted since then are only in the present one, which is kept."
        )

    def plan(self) -> Iterator[InstallationStep]:
        places, former = self.places, self.former
        if self.running:
            yield InstallationStep(f"Stop {', '.join(self.running)}", partial(_each, "stop", self.running))
        if self.copy is not None:
            yield InstallationStep(
                f"Put {self.copy.path} in the place of {self.settings.database_file}, which is kept beside it",
                self._roll_back,
            )
        yield InstallationStep(f"Have {places.environment} lead to {former.folder}", self._switch)
        gone = [name for name in files.installed_units(places) if name not in former.units]
        if gone:
            yield InstallationStep(
                f"Remove {', '.join(gone)}, which {former.version} does not have", partial(_remove, places, gone)
            )
        yield InstallationStep(
            f"Write the units and the command of {former.version}, by its own install-service", self._install
        )
        again = [unit for unit in reversed(self.running) if unit not in gone and unit != BACKUP]
        if again:
            yield InstallationStep(f"Start {', '.join(again)}", partial(_each, "start", again))

    def go(self, steps: list[InstallationStep]) -> None:
        """Do every step. A failure before the first change leaves the present version running."""
        try:
            for step in steps:
                step.do()
        except OperatorError as error:
            raise self._where_it_stands(error) from error
        self._say_what_became()

    # --- steps -------------------------------------------------------------------------------------------------------

    def _roll_back(self) -> None:
        assert self.copy is not None
        with machine.acting_as_user(self.places), progress_bar("Restoring"), actor.act_as(actor.COMMAND):
            self.done = rollback.roll_back(self.copy.path, self.settings, SystemClock())

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
        machine.run_systemctl("daemon-reload")

    # --- words -------------------------------------------------------------------------------------------------------

    def _where_it_stands(self, error: OperatorError) -> OperatorError:
        if self.is_switched:
            hint = f"The former version is in place. Run `sudo {self.former.program} install-service` again."
            return OperatorError(error.message, f"{error.hint or ''} {hint}".strip())
        if self.done is not None:
            return OperatorError(
                f"The database is the former one already, but its version is not in place. {error.message}",
                "Run this again: it continues here.",
            )
        _each("start", [unit for unit in reversed(self.running) if unit != BACKUP])
        return OperatorError(
            f"{error.message} Nothing was changed, and the present version runs as before.", error.hint
        )

    def _say_what_became(self) -> None:
        print_note()
        print_note(f"socialpub {self.former.version} is in use again.")
        if self.done is None:
            print_note("Every post is as it was.")
        else:
            backup.describe_rollback(self.done)
            print_note("Publishing is paused: the API can be used, and nothing is published. Next:")
            backup.say_after_rollback(1)
        if not self.running:
            print_note(f"It did not run before. {files.typed_commands(self.places).start()}.")


def _refuse_configuration(places: InstallationPlaces, former: Environment) -> None:
    """Raise OperatorError with the keys that the former version does not know. Its own program checks them."""
    identity = machine.user_identity(places)
    said = files.config_refusal(former.program, places.config, identity)
    if not said:
        return
    if files.config_refusal(places.program, places.config, identity):
        print_note(f"The configuration cannot be read outside of the services: {said}")
        return
    raise OperatorError(
        f"Version {former.version} does not accept the configuration, so nothing was changed. {said}",
        f"Remove from {places.config} what it names, then run this again.",
    )


def _remove(places: InstallationPlaces, names: list[str]) -> None:
    machine.run_systemctl("disable", "--now", *names)
    for name in names:
        (places.units / name).unlink()


def _each(verb: str, units: list[str]) -> None:
    for unit in units:
        machine.run_systemctl(verb, unit)
