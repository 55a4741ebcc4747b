"""`set-password`."""

import sys

import click

from socialpub.accounts import password
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import ask_hidden, print_note


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
        rt.write(password.put, password.hashed(given, repeated))
        print_note(f"The password is set. The dashboard is at {rt.settings.base_url}/")
        if not rt.settings.dashboard.enabled:
            print_note("It is switched off: set dashboard.enabled to true, and start socialpub again.")
