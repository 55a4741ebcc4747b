"""`socialpub install-service` and `uninstall-service`."""

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from socialpub.cli.install import files, machine
from socialpub.cli.install.files import DEFAULT_PLACES, InstallationPlaces, InstallationStep
from socialpub.cli.install.installer import Installer
from socialpub.cli.output import print_line, print_note
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings

FOLDER = click.Path(readable=False, path_type=Path)  # other users get the message that root is needed


def places_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the places. All commands of an installation need the same."""
    for name, parameter, usual, what in (
        (
            "--destdir",
            "destdir",
            None,
            "Put all below DIR, for a package; make no user, tell systemd nothing.",
        ),
        ("--user", "user", DEFAULT_PLACES.user, "The user that the service runs as."),
        ("--unit-dir", "units", DEFAULT_PLACES.units, "The folder of the units."),
        ("--command-dir", "commands", DEFAULT_PLACES.commands, "The folder of the command `socialpub`."),
        ("--data-dir", "data", DEFAULT_PLACES.data, "The data folder that a new configuration names."),
        ("--config-dir", "configuration", DEFAULT_PLACES.configuration, "The folder of config.toml."),
        ("--program-dir", "programs", DEFAULT_PLACES.programs, "The folder of the programs."),
    ):
        kind = {"metavar": "NAME"} if name == "--user" else {"type": FOLDER, "metavar": "DIR"}
        command = click.option(name, parameter, default=usual, show_default=usual is not None, help=what, **kind)(
            command
        )
    return command


@click.command("install-service")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@places_options
def install_service(dry_run: bool, destdir: Path | None, **where: Any) -> None:
    """Make a service of this machine, with systemd, out of the socialpub that runs this command.

    Run it again with a newer one to upgrade; configuration and data stay as they are.
    """
    os.umask(0o022)
    installer = Installer(InstallationPlaces(destdir=destdir and destdir.absolute(), **where))
    is_first = not installer.places.real(installer.places.config).exists()
    installer.check()
    _do(installer.plan(), dry_run)
    for sentence in installer.notes:
        print_note()
        print_note(sentence)
    if not dry_run:
        _say_next(installer, is_first)


@click.command("uninstall-service")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@places_options
def uninstall_service(dry_run: bool, destdir: Path | None, **where: Any) -> None:
    """Stop the service and remove its units, programs and command. Configuration and data stay."""
    places = InstallationPlaces(destdir=destdir and destdir.absolute(), **where).checked()
    if destdir is None:
        if os.geteuid() != 0:
            raise OperatorError("Only root can take a service away.", "Run it with sudo.")
        machine.refuse_without_systemd()
    data = files.read_config(places).data_dir
    _do(_removal_plan(places), dry_run)
    if dry_run:
        return
    print_note()
    print_note(f"Configuration and data stay: {places.configuration} and {data}, with its secret.key.")
    remove = shlex.join(["sudo", "rm", "-r", str(places.configuration), str(data)])
    print_note(f"To remove them for good, and the user: {remove} && sudo userdel {places.user}")


def _removal_plan(places: InstallationPlaces) -> Iterator[InstallationStep]:
    """Yield the steps of a removal. Data and configuration stay."""
    names = [*files.unit_texts(places, Settings())]
    present = [name for name in names if places.real(places.units / name).exists()]
    started = [name for name in present if "/" not in name]
    if places.destdir is None and started:
        yield InstallationStep(
            f"Stop {', '.join(started)}", lambda: machine.run_systemctl("disable", "--now", *started)
        )
    for name in present:
        path = places.units / name
        yield InstallationStep(f"Remove {path}", places.real(path).unlink)
    drop_ins = places.real(places.units / files.ADDRESSES).parent
    if drop_ins.is_dir() and set(drop_ins.iterdir()) <= {places.real(places.units / files.ADDRESSES)}:
        yield InstallationStep(f"Remove {drop_ins}", drop_ins.rmdir)
    if places.destdir is None and present:
        yield InstallationStep("Have systemd read the units", lambda: machine.run_systemctl("daemon-reload"))
    command = places.real(places.command)
    if command.exists() and not files.is_foreign_command(places):
        yield InstallationStep(f"Remove {places.command}", command.unlink)
    # Last: this program may be there.
    programs = places.real(places.programs)
    link, environments = places.real(places.environment), places.real(places.environments)
    if link.is_symlink():
        yield InstallationStep(f"Remove {places.environment}", link.unlink)
    if environments.is_dir():
        yield InstallationStep(f"Remove {places.environments}", lambda: shutil.rmtree(environments))
    if programs.is_dir() and set(programs.iterdir()) <= {link, environments}:
        yield InstallationStep(f"Remove {places.programs}", programs.rmdir)


def _do(plan: Iterator[InstallationStep], dry_run: bool) -> None:
    for step in plan:
        print_line(step.sentence)
        if not dry_run:
            step.do()


def _say_next(installer: Installer, is_first: bool) -> None:
    places = installer.places
    print_note()
    if installer.is_staged:
        print_note("When the package is unpacked, this does the rest (user, owners, secret.key), and tells systemd:")
        print_note(f"    {places.program} install-service")
        return
    typed = files.typed_commands(places)
    others = [name for name in files.installed_units(places) if not name.endswith(".service")]
    start = f"Start it: {shlex.join(['sudo', 'systemctl', 'enable', '--now', machine.WEB, machine.WORKER, *others])}"
    if not is_first:
        if not machine.is_active(machine.WEB):
            print_note(f"It does not run. {start}")
        print_note(f"Done. To check the installation: {typed.line('doctor')}")
        return
    print_note("Next:")
    print_note(f"1. Fill in base_url and your networks' apps: sudoedit {places.config}")
    print_note(f"2. {start}")
    print_note(f"3. Set the dashboard's password: {typed.line('admin', 'set-password')}")
    print_note(f"Keep a copy of {places.data / 'secret.key'} elsewhere: without it the stored tokens cannot be read.")
