"""`socialpub init`, `config` and `doctor`: create, show and check an installation."""

import os
import re
import shutil
import sys
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import as_command_error, print_json, print_line, print_note, print_styled, progress_bar
from socialpub.core import commands, manual, units
from socialpub.core.actor import COMMAND, act_as
from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader, template

if TYPE_CHECKING:
    from socialpub.ops.health import Finding

KEEP = "Keep secret.key safe: without it, stored tokens cannot be read."


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--new-secret",
    is_flag=True,
    help="Create only secret.key, for a configuration without a key or with a permanently lost key.",
)
@pass_command_context
def init(context: CommandContext, folder: Path | None, new_secret: bool) -> None:
    """Create config.toml, the data folder and secret.key in DIR (default: this folder). Overwrites nothing."""
    if new_secret:
        if folder is not None:
            context.config = folder / "config.toml"
            commands.repeat_config(context.config)
        _make_new_secret(context)
        return
    folder = folder or Path()
    for path in template.create(folder):
        print_line(str(path))
    config = folder / "config.toml"
    commands.repeat_config(None if folder == Path() else config)
    print_note()
    print_note(f"Next: fill in [providers.x] in {config}, then start socialpub with `{commands.line('serve')}`.")
    print_note(KEEP)


def create_if_missing(context: CommandContext) -> None:
    """Create the files of `init` if no configuration exists, as at the first start of a container."""
    file = loader.named_file(context.config) or commands.USUAL_FILES[0]
    give = commands.system_line("chown", "-R", f"{os.getuid()}:{os.getgid()}", str(file.parent), root=True)
    owner = f"Give {file.parent} to user {os.getuid()}: `{give}`. Or run the command as the owner of that folder."
    try:
        if file.exists():
            return
    except PermissionError as error:
        raise OperatorError(f"{file} cannot be used: {error.strerror}.", owner) from error
    if file.name != "config.toml":
        raise OperatorError(
            f"{file} does not exist, and init creates only a file named config.toml.",
            "Use the name config.toml, or write the file.",
        )
    try:
        template.create(file.parent)
    except template.AlreadyThere:
        raise
    except OperatorError as error:
        raise OperatorError(error.message, owner) from error
    print_note(f"{file} is new. {KEEP}")


def _make_new_secret(context: CommandContext) -> None:
    from socialpub.ops import file_faults, secret_rotation
    from socialpub.providers import registry

    settings = context.settings()
    file_faults.refuse_root(settings)
    is_first = not settings.database_file.exists()
    with act_as(COMMAND):
        lost = secret_rotation.replace_lost(settings, context.clock())
    print_line(str(settings.secret_key_file))
    if is_first:
        print_note(KEEP)
        return
    if lost.accounts:
        names = ", ".join(f"“{name}” ({registry.LABELS[provider]})" for name, provider in lost.accounts)
        print_note(f"The tokens of these accounts are lost: {names}. Their posts wait until you connect the accounts")
        print_note(f"again: {commands.line('admin', 'connect-profile', 'PROVIDER')}")
    if lost.addresses:
        print_note(f"These notification addresses are lost: {', '.join(lost.addresses)}. Add them again under System.")
    if lost.webhooks:
        add = commands.line("admin", "add-webhook", "URL")
        print_note(f"These webhooks are lost: {', '.join(lost.webhooks)}. Add them again: `{add}`.")
    print_note("Posts, media and API keys are unchanged. Existing URLs for uploads and media have expired. Earlier")
    print_note("backups need the old key, so make a new backup now. Keep the new key safe.")


# --- config -----------------------------------------------------------------------------------------------------------

EXAMPLES = resources.files("socialpub.cli") / "examples"
"""The example files. In a checkout, these are links to the files at its top."""
UNITS = {
    "web": "socialpub-web.service",
    "socket": "socialpub-web.socket",
    "worker": "socialpub-worker.service",
    "backup": "socialpub-backup.service",
    "timer": "socialpub-backup.timer",
}

MONITORING = {"alerts": "socialpub-alerts.yml", "dashboard": "socialpub-grafana.json"}
FLOWS = {"n8n": "n8n.json"}
SKILL = "SKILL.md"


@click.command("config")
@click.option("--example", is_flag=True, help="Print config.example.toml: every key with its default.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="Print this systemd unit.")
@click.option(
    "--monitoring",
    type=click.Choice(list(MONITORING)),
    help="Print the alert rules for Prometheus, or the dashboard for Grafana.",
)
@click.option("--flow", type=click.Choice(list(FLOWS)), help="Print a workflow that publishes and follows the log.")
@click.option("--skill", is_flag=True, help="Print a SKILL.md for agents that use these commands.")
@pass_command_context
def show_config(
    context: CommandContext, example: bool, unit: str | None, monitoring: str | None, flow: str | None, skill: bool
) -> None:
    """Check the configuration and print the path of its file, or print an example."""
    if example:
        _print(_read("config.example.toml"))
    elif unit:
        _print(_for_this_installation(context, unit))
    elif monitoring:
        _print(_read(MONITORING[monitoring]))
    elif flow:
        _print(_read(FLOWS[flow]))
    elif skill:
        _print(_read(SKILL))
    else:
        print_line(str(context.settings().config_file))


def _print(text: str) -> None:
    for line in text.splitlines():
        print_line(line)


def _read(name: str) -> str:
    return (EXAMPLES / name).read_text("utf-8")


def _for_this_installation(context: CommandContext, unit: str) -> str:
    """Return a unit with this program instead of that in /opt/socialpub, or a socket with the configured addresses."""
    text = _read(UNITS[unit])
    if unit == "socket":
        from socialpub.core.listen import resolve_listen

        addresses = resolve_listen(context.settings())
        lines = ["BindIPv6Only=both", *(f"ListenStream={address}" for address in addresses)]
        return re.sub("^ListenStream=.*", "\n".join(lines), text, flags=re.MULTILINE)
    beside = Path(sys.executable).with_name("socialpub")
    program = str(beside) if beside.exists() else shutil.which("socialpub")
    if program is None:
        return text
    if program.startswith(("/home/", "/root/")):
        print_note(f"{program} is in a home folder, and services cannot run programs there. Install a service with")
        print_note("`sudo make install` in a checkout.")
    return text.replace("/opt/socialpub/.venv/bin/socialpub", program)


# --- doctor -----------------------------------------------------------------------------------------------------------

MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}


@click.command("doctor")
@click.option("--problems", is_flag=True, help="Show only the problems that must be fixed (for cron).")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@pass_command_context
def run_doctor(context: CommandContext, problems: bool, as_json: bool) -> None:
    """Check the configuration, permissions, database, disk, clock, web server, worker, base_url and networks.

    The command also checks whether base_url leads to this appliance, and whether the running processes use the current
    configuration. The exit code is 1 if a problem must be fixed.
    """
    with progress_bar(lines=False):
        findings, base_url = _examine(context)
    printed = [finding for finding in findings if not problems or finding.level == "problem"]
    if as_json:
        print_json([_as_dict(finding, base_url) for finding in printed])
    else:
        for finding in printed:
            _show(finding, base_url)
    count = sum(finding.level == "problem" for finding in findings)
    if count and not problems:
        print_note(f"{units.count(count, 'problem', 'problems')} must be fixed.")
    sys.exit(1 if count else 0)


def _examine(context: CommandContext) -> "tuple[list[Finding], str | None]":
    """Return the findings, and the base_url if the configuration can be read."""
    from socialpub.db import file_check
    from socialpub.ops.doctor import checks
    from socialpub.ops.file_faults import WrongUser
    from socialpub.ops.health import problem

    try:
        settings = context.settings()
    except OperatorError as error:
        return [problem("configuration", error.message, error.hint or "Correct the configuration.")], None
    file_check.read_ahead(settings.database_file)  # this process does not have the database open yet
    findings, can_be_opened = checks.check_offline(settings)
    if not can_be_opened:
        return findings, settings.base_url
    try:
        with context.open("doctor") as rt:
            findings += checks.check(rt)
    except Exception as error:
        failure = as_command_error(error, context.find_fault)
        if failure is None:
            raise
        subject = "user" if isinstance(error, WrongUser) else "database"
        findings.append(problem(subject, failure.message, failure.hint or "Check data_dir."))
    return findings, settings.base_url


def _as_dict(finding: "Finding", base_url: str | None) -> dict[str, str]:
    values = {name: value for name, value in asdict(finding).items() if value}
    if base_url and finding.manual_place:
        values["manual"] = manual.url(base_url, finding.manual_place)
    return values


def _show(finding: "Finding", base_url: str | None) -> None:
    mark, color = MARKS[finding.level]
    first, *more = finding.message.split("\n")
    print_styled((mark, color), f" {finding.subject}: {first}")
    for line in (*more, *(finding.remedy.split("\n") if finding.remedy else ())):
        print_line(f"    {line}")
    if finding.manual_place and base_url:
        print_line(f"    Manual: {manual.url(base_url, finding.manual_place)}")
    elif finding.manual_place:
        print_line(f"    Manual: {commands.line('manual', finding.manual_place.partition('#')[0])}")
