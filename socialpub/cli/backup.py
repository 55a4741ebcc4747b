"""`backup`, `verify-backup`, `restore`: copies of everything."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.output import moment, say, working

if TYPE_CHECKING:
    from socialpub.ops.backup import BackupSummary

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command(short_help="Write a consistent copy of database and media.")
@FILE
@click.option("--with-secret", is_flag=True, help="Put secret.key into the copy too; keep it like a password then.")
@pass_appliance
def backup(appliance: Appliance, file: Path, with_secret: bool) -> None:
    """Write a consistent copy of database and media to FILE, while the appliance runs."""
    from socialpub.ops import backup

    with appliance.open() as rt, working("copying"):
        copy = backup.write(rt, file, with_secret=with_secret)
    click.echo(str(file))
    _describe(copy)
    if not with_secret:
        say("secret.key is not in it. Keep a copy of that elsewhere: without it the stored tokens cannot be read.")


@click.command("verify-backup", short_help="Read a copy to its end and say whether it is whole.")
@FILE
def verify_backup(file: Path) -> None:
    """Read a copy to its end: every byte is as it was written and the database is sound, or what is not."""
    from socialpub.ops import verification

    with working("reading"):
        copy = verification.verify(file)
    click.echo(f"{file} is whole.")
    _describe(copy)


@click.command(short_help="Put a copy into an empty data_dir, paused.")
@FILE
@pass_appliance
def restore(appliance: Appliance, file: Path) -> None:
    """Put a copy into the data_dir of the configuration, which must not hold a database or media yet.

    It starts paused: what was due since the copy was made may have been sent by the original.
    """
    from socialpub.ops.restore import restore as put_back

    settings = appliance.settings()
    with working("restoring"):
        copy = put_back(file, settings, appliance.clock())
    click.echo(str(settings.data_dir))
    _describe(copy)
    say("Restored, and paused: the API can be used, and nothing is published.")
    say("1. Stop the original for good.")
    say("2. Connect accounts whose tokens it has renewed since: socialpub admin list-profiles, connect-profile")
    say("3. socialpub admin resume")
    say("That reads back what was due since the copy was made, and never sends any of it again. Only if you know that")
    say("the original sent none of it: socialpub admin resume --nothing-was-sent")


def _describe(copy: "BackupSummary") -> None:
    posts = "1 post" if copy.posts == 1 else f"{copy.posts} posts"
    files = "1 media file" if copy.media_files == 1 else f"{copy.media_files} media files"
    secret = ", secret.key" if copy.holds_secret else ""
    say(f"As of {moment(copy.copied_at)}: {posts}, {files}{secret}.")
    if copy.media_missing:
        were = "1 media file was" if copy.media_missing == 1 else f"{copy.media_missing} media files were"
        say(f"{were} lost already when it was made.")
