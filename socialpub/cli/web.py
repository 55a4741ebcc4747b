"""`socialpub web`: the web server alone."""

import sys

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.web import listeners, server


@click.command()
@pass_command_context
def web(context: CommandContext) -> None:
    """Run the web server alone: the API, uploads and stored media."""
    with context.start("web") as rt:
        code = server.run(rt, listeners.open_for(rt))
    sys.exit(code)
