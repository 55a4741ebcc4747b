"""`socialpub admin`: what the owner does from the terminal, whether or not the appliance runs."""

import click

from socialpub.cli.admin.boards import list_boards
from socialpub.cli.admin.connecting import connect_profile, refresh_profile
from socialpub.cli.admin.keys import create_key, list_keys, revoke_key
from socialpub.cli.admin.posts import show_post, stop_post
from socialpub.cli.admin.profiles import (
    disconnect_profile,
    import_profile,
    list_profiles,
    rename_profile,
    set_options,
)
from socialpub.cli.admin.queue import pause, resume
from socialpub.cli.group import Commands


@click.group(cls=Commands)
def admin() -> None:
    """Keys, profiles, posts: everything that needs its owner."""


for command in (
    create_key,
    list_keys,
    revoke_key,
    connect_profile,
    import_profile,
    list_profiles,
    rename_profile,
    disconnect_profile,
    refresh_profile,
    set_options,
    list_boards,
    show_post,
    stop_post,
    pause,
    resume,
):
    admin.add_command(command)
