"""Taking the service away again. Data and configuration stay: they are its owner's to keep or to remove."""

import shutil
from collections.abc import Iterator

from socialpub.cli.installation import command_script, systemctl, units
from socialpub.cli.installation.places import InstallationPlaces
from socialpub.cli.installation.steps import InstallationStep
from socialpub.core.settings.loader import Settings


def plan(places: InstallationPlaces) -> Iterator[InstallationStep]:
    names = [*units.texts(places, Settings())]
    present = [name for name in names if places.real(places.units / name).exists()]
    started = [name for name in present if "/" not in name]
    if places.destdir is None and started:
        yield InstallationStep(f"Stop {', '.join(started)}", lambda: systemctl.run("disable", "--now", *started))
    for name in present:
        path = places.units / name
        yield InstallationStep(f"Remove {path}", places.real(path).unlink)
    drop_ins = places.real(places.units / units.ADDRESSES).parent
    if drop_ins.is_dir() and set(drop_ins.iterdir()) <= {places.real(places.units / units.ADDRESSES)}:
        yield InstallationStep(f"Remove {drop_ins}", drop_ins.rmdir)
    if places.destdir is None and present:
        yield InstallationStep("Have systemd read the units", lambda: systemctl.run("daemon-reload"))
    command = places.real(places.command)
    if command.exists() and not command_script.is_foreign(places):
        yield InstallationStep(f"Remove {places.command}", command.unlink)
    # Last, since this very program may lie there.
    programs = places.real(places.programs)
    link, environments = places.real(places.environment), places.real(places.environments)
    if link.is_symlink():
        yield InstallationStep(f"Remove {places.environment}", link.unlink)
    if environments.is_dir():
        yield InstallationStep(f"Remove {places.environments}", lambda: shutil.rmtree(environments))
    if programs.is_dir() and set(programs.iterdir()) <= {link, environments}:
        yield InstallationStep(f"Remove {places.programs}", programs.rmdir)
