"""`backup`, `verify-backup`, `restore`: copies of everything."""

from pathlib import Path

import click

from socialpub.cli import file_owner
from socialpub.cli.admin.queue import list_valid_keys
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.copy_progress_bar import progress_bar
from socialpub.cli.output import format_time, print_line, print_note
from socialpub.core import crypto, sizes
from socialpub.core.actor import COMMAND, SYSTEM, acting
from socialpub.core.crypto import Secrets
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.ops.copies import backup, backup_verification, restore, rollback, scheduled_copy
from socialpub.ops.copies.backup import BackupSummary, Seal
from socialpub.ops.copies.scheduled_copy import CopyInProgress
from socialpub.runtime import Runtime

UNSEALED = click.option(
    "--unsealed", is_flag=True, help="Accept a copy without a seal, such as a former version wrote."
)
COPY = click.argument("copy", metavar="FILE", type=click.Path(path_type=Path))


@click.command("backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-secret", is_flag=True, help="Put secret.key into the copy too; then keep it like a password.")
@pass_command_context
def write_backup(context: CommandContext, file: Path | None, with_secret: bool) -> None:
    """Write a consistent copy of database and media to FILE, while the appliance runs.

    Without FILE: into a dated folder of its own in the folder for scheduled copies ([backup] in the configuration),
    where media cost room only once and old copies are removed; this is what the timer runs.
    """
    with context.open() as rt:
        if file is None:
            _write_scheduled(rt, with_secret)
        else:
            with progress_bar("Copying"):
                summary = backup.write(rt, file, with_secret=with_secret)
            print_line(str(file))
            _describe(summary)
    if not with_secret:
        print_note("It does not contain secret.key. Keep that elsewhere: without it the stored tokens cannot be read.")


def _write_scheduled(rt: Runtime, with_secret: bool) -> None:
    try:
        with progress_bar("Copying"), acting(SYSTEM):
            made = scheduled_copy.make(rt, with_secret=with_secret)
    except CopyInProgress as error:
        print_note(f"{error.message} {error.hint}")
        return
    print_line(str(made.path))
    _describe(made.summary)
    print_note(f"{sizes.write(made.scheduled.size_bytes)} in all, {sizes.write(made.scheduled.new_bytes)} of them new.")
    if made.removed:
        copies = "1 older copy was" if made.removed == 1 else f"{made.removed} older copies were"
        print_note(f"{copies} removed ([backup] keep_days, keep_weeks, keep_months).")
    if made.changed:
        files = "1 stored media file is" if made.changed == 1 else f"{made.changed} stored media files are"
        print_note(f"{files} not what it was when it was first copied: check the disk of {rt.settings.data_dir}.")


@click.command()
@COPY
@UNSEALED
@pass_command_context
def verify_backup(context: CommandContext, copy: Path, unsealed: bool) -> None:
    """Read a copy, a file or a folder, to its end: is every byte as it was written, and the database sound?

    Where a configuration is found, the copy's seal must fit its secret.key: then nobody without that key has changed
    it. Elsewhere it says what is not known.
    """
    with progress_bar("Reading"):
        summary = backup_verification.verify(copy, _secrets_here(context), unsealed=unsealed)
    print_line(f"{copy} is whole.")
    _describe(summary)
    _describe_seal(summary)


@click.command("restore")
@COPY
@UNSEALED
@pass_command_context
def restore_backup(context: CommandContext, copy: Path, unsealed: bool) -> None:
    """Put a copy, a file or a folder, into the data_dir of the configuration, which may hold no database or media yet.

    With your secret.key in place before, a copy that somebody changed without that key is refused. It starts paused:
    what was due since the copy was made may have been sent by the original.

    A copy from data_dir/upgrades, made before an upgrade, takes the place of the database instead: that is going back.
    Media stay, and the present database is put aside first.
    """
    settings = context.settings()
    file_owner.refuse_root(settings)
    if rollback.is_upgrade_copy(copy, settings):
        _roll_back(context, settings, copy, unsealed)
        return
    with progress_bar("Restoring"), acting(COMMAND):
        summary = restore.restore(copy, settings, context.clock(), unsealed=unsealed)
    print_line(str(settings.data_dir))
    _describe(summary)
    _describe_seal(summary)
    list_valid_keys(summary.valid_keys)
    print_note("Restored, and paused: the API can be used, and nothing is published.")
    print_note("1. Stop the original for good.")
    print_note("2. Reconnect the accounts whose tokens it has renewed since then:")
    print_note("   socialpub admin list-profiles, then socialpub admin connect-profile")
    print_note("3. socialpub admin resume")
    print_note("   It looks up what was due since the copy was made, and never sends any of it again. Only if you know")
    print_note("   that the original sent none of it, run: socialpub admin resume --nothing-was-sent")


def _roll_back(context: CommandContext, settings: Settings, copy: Path, unsealed: bool) -> None:
    with progress_bar("Restoring"), acting(COMMAND):
        done = rollback.roll_back(copy, settings, context.clock(), unsealed=unsealed)
    print_line(str(settings.database_file))
    print_note(f"As of {format_time(done.copied_at)}: {'1 post' if done.posts == 1 else f'{done.posts} posts'}.")
    if done.media_missing:
        files = "1 media file of it was" if done.media_missing == 1 else f"{done.media_missing} media files of it were"
        print_note(f"{files} removed since.")
    if done.put_aside:
        print_note(f"The database that was in use lies in {done.put_aside}: what was accepted since is there alone.")
        print_note(f"To go forward again: socialpub restore {done.put_aside}")
    if done.keys.revoked:
        print_note(f"API keys revoked since then stay revoked: {', '.join(done.keys.revoked)}.")
    if done.keys.gone:
        print_note(f"API keys created since then are gone: {', '.join(done.keys.gone)}.")
    if done.put_aside:
        print_note("The dashboard's password stays as it is. Every browser must sign in again.")
    list_valid_keys(done.valid_keys)
    print_note("Restored, and paused: the API can be used, and nothing is published.")
    if done.updates:
        print_note("1. Install the former version now: any command of this one brings the database up to date again.")
    else:
        print_note("1. Start socialpub.")
    print_note("2. Reconnect the accounts whose tokens were renewed since then:")
    print_note("   socialpub admin list-profiles, then socialpub admin connect-profile")
    print_note("3. socialpub admin resume")
    print_note("   It looks up what was due since then, and never sends any of it again.")


SEALS = {
    Seal.FITS: "Its seal fits the secret.key that is here: nobody without that key has changed it.",
    Seal.OWN: "Its seal fits the secret.key that it holds. Whoever has had it in hand could have changed it and sealed "
    "it anew; only your own secret.key, in place before, can tell.",
    Seal.UNCHECKED: "Its seal was not checked, as its secret.key is not here: somebody may have changed it on purpose.",
    Seal.NONE: "It has no seal, as copies of former versions and databases alone: somebody may have changed it on "
    "purpose.",
}


def _secrets_here(context: CommandContext) -> Secrets | None:
    """Those of the configuration, where there is one: a copy can be checked on any machine."""
    try:
        key_file = context.settings().secret_key_file
        return crypto.load(key_file) if key_file.exists() else None
    except (OperatorError, PermissionError):
        return None


def _describe_seal(summary: BackupSummary) -> None:
    print_note(SEALS[summary.seal])
    if summary.seal is Seal.FITS and summary.holds_secret:
        print_note("It holds that key, though: whoever has had it in hand could have sealed it anew.")


def _describe(summary: BackupSummary) -> None:
    posts = "1 post" if summary.posts == 1 else f"{summary.posts} posts"
    files = "1 media file" if summary.media_files == 1 else f"{summary.media_files} media files"
    secret = ", secret.key" if summary.holds_secret else ""
    print_note(f"As of {format_time(summary.copied_at)}: {posts}, {files}{secret}.")
    if summary.media_missing:
        were = "1 media file was" if summary.media_missing == 1 else f"{summary.media_missing} media files were"
        print_note(f"{were} missing already when it was made.")
