"""`rotate-secret`."""

import click

from socialpub.cli import file_owner
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_line, print_note
from socialpub.core import commands
from socialpub.core.actor import COMMAND, acting
from socialpub.ops import secret_rotation


@click.command()
@click.option(
    "--end-addresses",
    is_flag=True,
    help="End the addresses that were handed out for uploads and media now: somebody else has the key.",
)
@pass_command_context
def rotate_secret(context: CommandContext, end_addresses: bool) -> None:
    """Make a new secret.key, and seal everything that is stored with it. socialpub must be stopped meanwhile.

    Accounts stay connected. The former key is kept beside the new one: copies made before need it.
    """
    settings = context.settings()
    file_owner.refuse_root(settings)
    with acting(COMMAND):
        done = secret_rotation.rotate(settings, context.clock(), keep_urls=not end_addresses)
    print_line(str(settings.secret_key_file))
    print_note(f"The new key is in its place; keep a copy of it elsewhere. The former one is {done.former_key}:")
    print_note("backups made before, and the database from before an upgrade, can be restored with it alone. Keep it")
    print_note("apart from here, and destroy it with the last of those.")
    print_note(f"Make a new backup now: `{commands.line('backup', 'FILE')}`")
    if end_addresses:
        print_note("Addresses handed out for uploads and media have ended; a network that was to fetch one fails.")
    else:
        print_note(
            f"Addresses handed out for uploads and media are valid until they end, {format_time(done.urls_end_at)}"
        )
        print_note("at the latest.")
    print_note(f"{commands.start()}.")
