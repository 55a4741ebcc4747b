"""`backup`, `verify-backup`, `restore`: backups of everything."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from socialpub.cli.admin.appliance import list_valid_keys
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import byte_bar, format_time, print_line, print_note
from socialpub.core import commands, units
from socialpub.core.actor import COMMAND, SYSTEM, act_as
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.ops import storage
from socialpub.ops.backup import create, format, restore, rollback, schedule, verify
from socialpub.ops.backup.format import BackupSummary, Seal
from socialpub.ops.backup.schedule import BackupInProgress
from socialpub.runtime import Runtime

LINE_SECONDS = 30.0
"""The shortest time between two lines."""


class ProgressLines:
    """Shows progress without a terminal, as lines for the log."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._expected = self._done = 0
        self._next_at = time.monotonic() + LINE_SECONDS

    def expect(self, size_bytes: int) -> None:
        self._expected += size_bytes

    def advance(self, size_bytes: int) -> None:
        self._done += size_bytes
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + LINE_SECONDS
            done, expected = (units.size(size).partition(" (")[0] for size in (self._done, self._expected))
            share = min(100, 100 * self._done // max(self._expected, 1))
            print_note(f"{self._doing}: {share} %, {done} of {expected}")


@contextmanager
def progress_bar(doing: str) -> Iterator[None]:
    """Show the progress of a backup on stderr: a bar on a terminal, else lines."""
    with byte_bar(doing) as bar, format.report_progress_to(bar or ProgressLines(doing)):
        yield


UNSEALED = click.option(
    "--unsealed", is_flag=True, help="Accept a backup without a seal, such as a former version wrote."
)
BACKUP_FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))


@click.command("backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-secret", is_flag=True, help="Include secret.key. Keep such a backup like a password.")
@pass_command_context
def write_backup(context: CommandContext, file: Path | None, with_secret: bool) -> None:
    """Write a consistent backup of database and media to FILE, while the appliance runs.

    Without FILE: into a dated folder of its own in the folder for scheduled backups ([backup] in the configuration).
    There media cost room only once, and old backups are removed. The timer runs this command.
    """
    with context.open() as rt:
        if file is None:
            _write_scheduled(rt, with_secret)
        else:
            with progress_bar("Copying"):
                summary = create.write_backup(rt, file, with_secret=with_secret)
            print_line(str(file))
            _describe(summary)
        after = rt.settings.backup.after if file is None else ()
    if not with_secret:
        print_note("It does not contain secret.key. Keep that elsewhere: without it the stored tokens cannot be read.")
    if after:
        print_note(
            f"Keep the password or credentials of {Path(after[0]).name} elsewhere as well: without them no backup that "
            "it took can be read."
        )


def _write_scheduled(rt: Runtime, with_secret: bool) -> None:
    try:
        with progress_bar("Copying"), act_as(SYSTEM):
            made = schedule.make_backup(rt, with_secret=with_secret)
    except BackupInProgress as error:
        print_note(f"{error.message} {error.hint}")
        return
    print_line(str(made.path))
    _describe(made.summary)
    print_note(f"{units.size(made.scheduled.size_bytes)} in all, {units.size(made.scheduled.new_bytes)} of them new.")
    if made.removed:
        were = units.count(made.removed, "older backup was", "older backups were")
        print_note(f"{were} removed ([backup] keep_days, keep_weeks, keep_months).")
    if made.changed:
        are = units.count(made.changed, "stored media file is", "stored media files are")
        print_note(f"{are} not what it was when it was first copied: check the disk of {rt.settings.data_dir}.")


@click.command()
@BACKUP_FILE
@UNSEALED
@pass_command_context
def verify_backup(context: CommandContext, file: Path, unsealed: bool) -> None:
    """Read a backup, a file or a folder, to its end: is every byte as it was written, and the database sound?

    Where a configuration is found, the backup's seal must fit its secret.key. Then the backup was not changed without
    that key. Elsewhere the command says what is not known.
    """
    with progress_bar("Reading"):
        summary = verify.verify_backup(file, _secrets_here(context), unsealed=unsealed)
    print_line(f"{file} is whole.")
    _describe(summary)
    _describe_seal(summary)


@click.command("restore")
@BACKUP_FILE
@UNSEALED
@pass_command_context
def restore_backup(context: CommandContext, file: Path, unsealed: bool) -> None:
    """Restore a backup, a file or a folder, into the data_dir of the configuration. It may contain no posts or media
    yet. The empty database of a new installation is moved aside.

    With your secret.key in place before, a backup that was changed without that key is refused. The appliance starts
    paused: the original may have sent what was due since the backup was made.

    A backup from data_dir/upgrades, made before an upgrade, replaces the database instead: that is going back. Media
    stay, and the present database is kept beside it.
    """
    settings = context.settings()
    storage.refuse_root(settings)
    if rollback.is_upgrade_backup(file, settings):
        _roll_back(context, settings, file, unsealed)
        return
    with progress_bar("Restoring"), act_as(COMMAND):
        summary = restore.restore(file, settings, context.clock(), unsealed=unsealed)
    print_line(str(settings.data_dir))
    _describe(summary)
    _describe_seal(summary)
    list_valid_keys(summary.valid_keys)
    if summary.moved_aside is not None:
        print_note(f"The empty database of the new installation is now {summary.moved_aside}. It can be removed.")
    print_note("Restored, and paused: the API can be used, and nothing is published.")
    print_note("1. Stop the original for good.")
    print_note(f"2. {commands.here().start()}.")
    print_note("3. Reconnect the accounts whose tokens it has renewed since then:")
    print_note(f"   {_reconnecting()}")
    print_note(f"4. {commands.line('admin', 'resume')}")
    print_note(
        "   It looks up what was due since the backup was made, and never sends any of it again. Only if you know"
    )
    print_note(f"   that the original sent none of it, run `{commands.line('admin', 'resume', '--nothing-was-sent')}`.")


def _roll_back(context: CommandContext, settings: Settings, file: Path, unsealed: bool) -> None:
    with progress_bar("Restoring"), act_as(COMMAND):
        done = rollback.roll_back(file, settings, context.clock(), unsealed=unsealed)
    print_line(str(settings.database_file))
    describe_rollback(done)
    print_note("Restored, and paused: the API can be used, and nothing is published.")
    if done.updates:
        print_note(f"1. Install the former version now, {done.version}: any command of this one brings the database up")
        print_note("   to date again.")
    else:
        print_note(f"1. {commands.here().start()}.")
    print_steps_after_rollback(2)


def describe_rollback(done: rollback.Rollback) -> None:
    """Print what the database contains now, and what became of later posts and keys."""
    posts = units.count(done.posts, "post", "posts")
    print_note(f"As of {format_time(done.copied_at)}, made by version {done.version}: {posts}.")
    if done.accepted_since:
        were = units.count(done.accepted_since, "post was", "posts were")
        sentence = f"{were} accepted since then and {'is' if done.accepted_since == 1 else 'are'} not in it."
        if done.open_since:
            was = "was" if done.open_since == 1 else "were"
            sentence += f" {done.open_since} of them {was} still to be published, and will not be."
        print_note(sentence)
    if done.media_missing:
        were = units.count(done.media_missing, "media file of it was", "media files of it were")
        print_note(f"{were} removed since.")
    if done.put_aside:
        print_note(f"The database that was in use lies in {done.put_aside}: what was accepted since is there alone.")
        print_note(f"To go forward again: {commands.line('restore', str(done.put_aside))}")
    if done.keys.revoked:
        print_note(f"API keys revoked since then stay revoked: {', '.join(done.keys.revoked)}.")
    if done.keys.gone:
        print_note(f"API keys created since then are gone: {', '.join(done.keys.gone)}.")
    if done.put_aside:
        print_note("The dashboard's password stays as it is. Every browser must sign in again.")
    list_valid_keys(done.valid_keys)


def print_steps_after_rollback(number: int) -> None:
    """Print the steps to publishing again, beginning with this number."""
    print_note(f"{number}. Reconnect the accounts whose tokens were renewed since then:")
    print_note(f"   {_reconnecting()}")
    print_note(f"{number + 1}. {commands.line('admin', 'resume')}")
    print_note("   It looks up what was due since then, and never sends any of it again.")


def _reconnecting() -> str:
    profiles, connect = commands.line("admin", "list-profiles"), commands.line("admin", "connect-profile", "PROVIDER")
    return f"{profiles}, then {connect}"


SEALS = {
    Seal.FITS: "Its seal fits the secret.key that is here: nobody without that key has changed it.",
    Seal.OWN: "Its seal fits the secret.key that it holds. Whoever has had it in hand could have changed it and sealed "
    "it anew; only your own secret.key, in place before, can tell.",
    Seal.UNCHECKED: "Its seal was not checked, as its secret.key is not here: somebody may have changed it on purpose.",
    Seal.NONE: "This backup is not signed (older versions did not sign them), so tampering cannot be ruled out.",
}


def _secrets_here(context: CommandContext) -> Secrets | None:
    """Return the secrets of the configuration, if there is one: a backup can be verified on any machine."""
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
    posts = units.count(summary.posts, "post", "posts")
    files = units.count(summary.media_files, "media file", "media files")
    secret = ", secret.key" if summary.holds_secret else ""
    print_note(f"As of {format_time(summary.copied_at)}: {posts}, {files}{secret}.")
    if summary.media_missing:
        were = units.count(summary.media_missing, "media file was", "media files were")
        print_note(f"{were} missing already when it was made.")
