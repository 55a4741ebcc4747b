"""`doctor`: what is wrong with this installation, and what to do about it."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.errors import as_failure
from socialpub.cli.output import say, show_json

if TYPE_CHECKING:
    from socialpub.ops.finding import Finding


@click.command(short_help="Check everything, and say what to do about each finding.")
@click.option("--problems", is_flag=True, help="Show only what must be mended (for cron).")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@pass_appliance
def doctor(appliance: Appliance, problems: bool, as_json: bool) -> None:
    """Check configuration, permissions, database, disk, clock, worker, base_url and the networks.

    Ends with 1 when something must be mended.
    """
    found = _examine(appliance)
    shown = [finding for finding in found if not problems or finding.level == "problem"]
    if as_json:
        show_json([{name: value for name, value in asdict(finding).items() if value} for finding in shown])
    else:
        for finding in shown:
            _show(finding)
    bad = sum(finding.level == "problem" for finding in found)
    if bad and not problems:
        say(f"{bad} things must be mended." if bad > 1 else "1 thing must be mended.")
    sys.exit(1 if bad else 0)


def _examine(appliance: Appliance) -> "list[Finding]":
    from socialpub.core.errors import OperatorError
    from socialpub.ops import doctor
    from socialpub.ops.finding import problem

    try:
        settings = appliance.settings()
    except OperatorError as error:
        return [problem("configuration", error.message, error.hint or "Mend the configuration.")]
    found, goes_on = doctor.check_offline(settings)
    if not goes_on:
        return found
    try:
        with appliance.open("doctor") as rt:
            found += doctor.check(rt)
    except Exception as error:
        failure = as_failure(error)
        if failure is None:
            raise
        found.append(problem("database", failure.message, failure.hint or "Look at data_dir."))
    return found


def _show(finding: "Finding") -> None:
    mark, color = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}[finding.level]
    click.echo(click.style(mark, fg=color) + f" {finding.subject}: {finding.message}")
    if finding.remedy:
        click.echo(f"    {finding.remedy}")
