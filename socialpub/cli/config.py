"""`socialpub config`: which configuration counts here, and the files that come with socialpub to begin from."""

import shutil
import sys
from importlib import resources
from pathlib import Path

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import print_line, print_note
from socialpub.core import commands

EXAMPLES = resources.files("socialpub.cli") / "examples"
"""In a checkout these are links to the files that lie at its top."""
UNITS = {
    "web": "socialpub-web.service",
    "socket": "socialpub-web.socket",
    "worker": "socialpub-worker.service",
    "backup": "socialpub-backup.service",
    "timer": "socialpub-backup.timer",
}

MONITORING = {"alerts": "socialpub-alerts.yml", "dashboard": "socialpub-grafana.json"}


@click.command("config")
@click.option("--example", is_flag=True, help="Print config.example.toml: every key with its default.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="Print this systemd unit.")
@click.option(
    "--monitoring",
    type=click.Choice(list(MONITORING)),
    help="Print the alert rules for Prometheus, or the dashboard for Grafana.",
)
@pass_command_context
def show_config(context: CommandContext, example: bool, unit: str | None, monitoring: str | None) -> None:
    """Check the configuration and print the file that is used; or print an example to begin from."""
    if example:
        _print(_read("config.example.toml"))
    elif unit:
        _print(_for_this_installation(_read(UNITS[unit])))
    elif monitoring:
        _print(_read(MONITORING[monitoring]))
    else:
        print_line(str(context.settings().config_file))


def _print(text: str) -> None:
    for line in text.splitlines():
        print_line(line)


def _read(name: str) -> str:
    return (EXAMPLES / name).read_text("utf-8")


def _for_this_installation(unit: str) -> str:
    """The unit with this very program in place of the one in /opt/socialpub, in its first lines as well."""
    beside = Path(sys.executable).with_name("socialpub")
    program = str(beside) if beside.exists() else shutil.which("socialpub")
    if program is None:
        return unit
    if program.startswith(("/home/", "/root/")):
        print_note(f"The service may not enter home folders, where {program} lies. This copies it to where it may:")
        print_note(commands.line("install-service"))
    return unit.replace("/opt/socialpub/.venv/bin/socialpub", program)
