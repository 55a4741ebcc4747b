"""`socialpub worker`: the worker alone."""

import sys

import click

from socialpub.cli.child_process import end_with_parent, end_with_parent_option
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.ops.notify import send
from socialpub.worker import process


@click.command()
@end_with_parent_option
@pass_command_context
def worker(context: CommandContext, stop_seconds: float | None) -> None:
    """Run the worker alone: it publishes what is due."""
    end_with_parent(stop_seconds)
    with context.start("worker") as rt:
        send.refuse_wrong_addresses(rt.settings)
        code = process.run(rt)
    sys.exit(code)
