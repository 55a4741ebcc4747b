"""`socialpub doctor`: what is wrong with this installation, and what to do about it."""

import sys
from dataclasses import asdict

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.data_folder import WrongUser
from socialpub.cli.output import as_command_error, print_json, print_line, print_note, print_styled
from socialpub.core.errors import OperatorError
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding, Level, problem

MARKS = {Level.OK: ("✓", "green"), Level.NOTE: ("·", "yellow"), Level.PROBLEM: ("✗", "red")}


@click.command("doctor")
@click.option("--problems", is_flag=True, help="Show only what must be fixed (for cron).")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@pass_command_context
def run_doctor(context: CommandContext, problems: bool, as_json: bool) -> None:
    """Check configuration, permissions, database, disk, clock, web server, worker, base_url and the networks.

    Also whether base_url leads to this appliance, and whether what runs has the configuration that lies there now.
    Ends with 1 when something must be fixed.
    """
    found = _examine(context)
    shown = [finding for finding in found if not problems or finding.level == Level.PROBLEM]
    if as_json:
        print_json([{name: value for name, value in asdict(finding).items() if value} for finding in shown])
    else:
        for finding in shown:
            _show(finding)
    count = sum(finding.level == Level.PROBLEM for finding in found)
    if count and not problems:
        print_note(f"{count} problems must be fixed." if count > 1 else "1 problem must be fixed.")
    sys.exit(1 if count else 0)


def _examine(context: CommandContext) -> list[Finding]:
    try:
        settings = context.settings()
    except OperatorError as error:
        return [problem("configuration", error.message, error.hint or "Correct the configuration.")]
    found, can_be_opened = checks.check_offline(settings)
    if not can_be_opened:
        return found
    try:
        with context.open("doctor") as rt:
            found += checks.check(rt)
    except Exception as error:
        failure = as_command_error(error, context.find_fault)
        if failure is None:
            raise
        subject = "user" if isinstance(error, WrongUser) else "database"
        found.append(problem(subject, failure.message, failure.hint or "Check data_dir."))
    return found


def _show(finding: Finding) -> None:
    mark, color = MARKS[finding.level]
    first, *more = finding.message.split("\n")
    print_styled((mark, color), f" {finding.subject}: {first}")
    for line in (*more, *(finding.remedy.split("\n") if finding.remedy else ())):
        print_line(f"    {line}")
