"""The commands `backup`, `verify-backup` and `restore`."""

from pathlib import Path

import click

from socialpub.cli.admin.appliance import list_valid_keys
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_line, print_note, progress_bar
from socialpub.core import commands, units
from socialpub.core.actor import COMMAND, SYSTEM, act_as
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db.backup_format import BackupSummary, Seal
from socialpub.ops import file_faults
from socialpub.ops.backup import create, restore, schedule, verify
from socialpub.ops.backup.restore import Restored, Rollback
from socialpub.ops.backup.schedule import BackupInProgress
from socialpub.runtime import Runtime

UNSEALED = click.option("--unsealed", is_flag=True, help="Accept an unsigned backup, such as a database alone.")
BACKUP_FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))


@click.command("backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-secret", is_flag=True, help="Include secret.key. Keep such a backup like a password.")
@pass_command_context
def write_backup(context: CommandContext, file: Path | None, with_secret: bool) -> None:
    """Write a consistent backup of the database and the media to FILE, even while the appliance is running.

    Without FILE, the backup is a dated folder in the folder for scheduled backups ([backup] in the configuration).
    There, backups share the space of unchanged media, and old backups are removed. The timer runs this command.
    """
    with context.open() as rt:
        if file is None:
            _write_scheduled(rt, with_secret)
        else:
            with progress_bar():
                summary = create.write_backup(rt, file, with_secret=with_secret)
            print_line(str(file))
            _describe(summary)
        after = rt.settings.backup.after if file is None else ()
    if not with_secret:
        print_note("The backup does not contain secret.key. Keep the key elsewhere: it is needed to read the tokens.")
    if after:
        name = Path(after[0]).name
        print_note(f"Also keep the password of {name} elsewhere: without it, you cannot read the backups of {name}.")


def _write_scheduled(rt: Runtime, with_secret: bool) -> None:
    try:
        with progress_bar(), act_as(SYSTEM):
            made = schedule.make_backup(rt, with_secret=with_secret)
    except BackupInProgress as error:
        print_note(f"{error.message} {error.hint}")
        return
    print_line(str(made.path))
    _describe(made.summary)
    print_note(
        f"Size: {units.size(made.scheduled.size_bytes)}, of which {units.size(made.scheduled.new_bytes)} are new."
    )
    if made.removed:
        were = units.count(made.removed, "older backup was", "older backups were")
        print_note(f"{were} removed ([backup] keep).")


@click.command()
@BACKUP_FILE
@UNSEALED
@pass_command_context
def verify_backup(context: CommandContext, file: Path, unsealed: bool) -> None:
    """Check that every byte of a backup (a file or a folder) is unchanged, and that its database is sound.

    With a configuration, the signature of the backup must match the secret.key of the configuration. This proves that
    the backup was not changed without that key. Without a configuration, the signature is not checked.
    """
    with progress_bar():
        summary = verify.verify_backup(file, _secrets_here(context), unsealed=unsealed)
    print_line(f"{file} is complete and unchanged.")
    _describe(summary)
    _describe_seal(summary)


@click.command("restore")
@BACKUP_FILE
@UNSEALED
@pass_command_context
def restore_backup(context: CommandContext, file: Path, unsealed: bool) -> None:
    """Restore a backup (a file or a folder) into the data_dir of the configuration.

    The data_dir must not contain posts or media. The empty database of a new installation is renamed.

    First put your secret.key into data_dir: the command then refuses a backup that was changed without that key. The
    appliance starts paused, because the original installation may have published posts since the backup.

    A backup from data_dir/upgrades replaces the database, to go back to the version before an upgrade. Media stay, and
    the current database is kept beside that backup.
    """
    settings = context.settings()
    file_faults.refuse_root(settings)
    with progress_bar(), act_as(COMMAND):
        restored = restore.restore(file, settings, context.clock(), unsealed=unsealed)
    print_line(str(settings.data_dir))
    _describe(restored.summary)
    _describe_seal(restored.summary)
    if restored.rollback is not None:
        _describe_rollback(restored.rollback)
    list_valid_keys(restored.valid_keys)
    if restored.moved_aside is not None:
        print_note(
            f"The empty database of the new installation is now {restored.moved_aside}. You can remove this file."
        )
    print_note("The backup is restored, and publishing is paused. The API works, but nothing is published.")
    _print_steps(restored)


def _print_steps(restored: Restored) -> None:
    """Print the steps until posts are published again."""
    profiles, connect = commands.line("admin", "list-profiles"), commands.line("admin", "connect-profile", "PROVIDER")
    if restored.rollback is None:
        print_note("1. Stop the original installation permanently.")
    elif restored.updates:
        print_note(f"1. Install the previous version {restored.info.version} now. Any command of the current version")
        print_note("   would update the database again.")
    else:
        print_note("1. Do not start the newer version: it would update the database again.")
    print_note(f"2. {commands.start()}.")
    print_note("3. Reconnect the accounts whose tokens were renewed since the backup:")
    print_note(f"   {profiles}, then {connect}")
    print_note(f"4. {commands.line('admin', 'resume')}")
    print_note("   This reads back the posts that were due since the backup, and never publishes them again.")
    if restored.rollback is None:
        print_note("   Only if you know that the original published none of these posts, run")
        print_note(f"   `{commands.line('admin', 'resume', '--nothing-was-sent')}` instead.")


def _describe_rollback(rollback: Rollback) -> None:
    """Print what happened to later posts and keys."""
    if rollback.accepted_since:
        were = units.count(rollback.accepted_since, "post was", "posts were")
        sentence = f"{were} accepted since the backup and {'is' if rollback.accepted_since == 1 else 'are'} not in it."
        if rollback.open_since:
            sentence += f" {rollback.open_since} of them will not be published."
        print_note(sentence)
    print_note(f"The replaced database is now {rollback.backup}. Only this backup contains posts accepted since then.")
    print_note(f"To use the replaced database again: {commands.line('restore', str(rollback.backup))}")
    if rollback.keys.revoked:
        print_note(f"API keys revoked since the backup stay revoked: {', '.join(rollback.keys.revoked)}.")
    if rollback.keys.gone:
        print_note(f"API keys created since the backup are gone: {', '.join(rollback.keys.gone)}.")
    print_note("The dashboard's password is unchanged. Every browser must sign in again.")


SEALS = {
    Seal.FITS: "The signature matches the secret.key of this installation. The backup was not changed without that "
    "key.",
    Seal.UNCHECKED: "The signature was not checked, because the secret.key of the backup is not in data_dir. Tampering "
    "cannot be ruled out. To check the signature, put your own secret.key in place first.",
    Seal.NONE: "This backup is not signed, so tampering cannot be ruled out.",
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
        print_note("The backup contains that key, so anyone with access to the backup could have signed it again.")


def _describe(summary: BackupSummary) -> None:
    posts = units.count(summary.posts, "post", "posts")
    files = units.count(summary.media_files, "media file", "media files")
    secret = ", secret.key" if summary.holds_secret else ""
    print_note(f"As of {format_time(summary.copied_at)}: {posts}, {files}{secret}.")
    if summary.media_missing:
        were = units.count(summary.media_missing, "media file was", "media files were")
        print_note(f"{were} missing.")
