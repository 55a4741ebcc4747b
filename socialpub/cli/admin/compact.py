"""`compact`."""

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import print_note
from socialpub.core import sizes
from socialpub.ops import database_file


@click.command()
@pass_command_context
def compact(context: CommandContext) -> None:
    """Write the database anew, as small as its rows are. Only while socialpub is stopped.

    It is needed once, for a database that an older version made; a new one shrinks by itself.
    """
    with context.open() as rt:
        found = database_file.compact(rt)
    print_note(f"The database has {sizes.write(found.after_bytes)} now; it had {sizes.write(found.before_bytes)}.")
    print_note("From now on it shrinks by itself when much was removed.")
