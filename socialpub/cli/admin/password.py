"""`set-password`."""

import sys

import click

from socialpub.accounts import password
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.errors import CommandError
from socialpub.cli.output import ask_hidden, print_note
from socialpub.core import commands


@click.command()
@pass_command_context
def set_password(context: CommandContext) -> None:
    """Set the dashboard's password. It is asked for twice, or read from a pipe; every browser has to sign in again."""
    with context.open() as rt:
        if sys.stdin.isatty():
            given = ask_hidden("Password")
            repeated = ask_hidden("Repeat password")
        else:
            given = repeated = sys.stdin.readline().rstrip("\r\n")
            if not given:
                again = commands.line("admin", "set-password")
                raise CommandError("No password was given: there is no terminal to ask at.", f"Run `{again}`.")
        rt.write(password.put, password.hashed(given, repeated))
        print_note(f"The password is set. The dashboard is at {rt.settings.base_url}/")
        if not rt.settings.dashboard.enabled:
            print_note(f"The dashboard is off. Set dashboard.enabled to true. {commands.restart()}.")
