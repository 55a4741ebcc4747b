"""The commands for the whole appliance: API keys, pauses, password, secret key, notifications and database."""

import sys
from collections.abc import Sequence

import click

from socialpub.accounts import api_keys, remedies, sign_in
from socialpub.accounts.remedies import Surface
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import (
    EXEC_TERMINAL,
    CommandError,
    ask_hidden,
    format_time,
    print_line,
    print_note,
    print_table,
)
from socialpub.core import commands, units
from socialpub.core.actor import COMMAND, act_as
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.models import ApiKeyRow
from socialpub.ops import alerts, file_faults, secret_rotation
from socialpub.ops.notify import notifier, send
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime


@click.command()
@pass_command_context
def pause(context: CommandContext) -> None:
    """Pause publishing until `resume`. The API continues to accept posts."""
    with context.open() as rt:
        since = appliance_state.paused_at(rt.db)
        rt.write(resume.pause)
    if since:
        print_note(f"Publishing has already been paused since {format_time(since)}.")
    else:
        print_note("Publishing is paused. Calls in progress finish, and no other deliveries start.")
    print_note(f"To continue, {remedies.resume()}.")


@click.command("resume")
@click.option(
    "--nothing-was-sent",
    is_flag=True,
    help="After a restore: confirm that the original installation published nothing since the backup.",
)
@click.option("--revoke-keys", is_flag=True, help="After a restore: revoke the API keys that came with the backup.")
@click.option("--keep-keys", is_flag=True, help="After a restore: keep these keys, and stop reporting them.")
@pass_command_context
def resume_publishing(context: CommandContext, nothing_was_sent: bool, revoke_keys: bool, keep_keys: bool) -> None:
    """Resume publishing after a pause or a restore, and report posts that are too late.

    After a restore, posts that were due since the backup are read back from the accounts and never published again. The
    command lists the posts that are still scheduled on standard output. It lists the API keys of the backup on standard
    error until you keep or revoke them. Keys created after the restore are not affected.
    """
    if revoke_keys and keep_keys:
        raise click.UsageError("--revoke-keys and --keep-keys cannot be combined.")
    with context.open() as rt:
        if revoke_keys or keep_keys:
            _settle_keys(rt, revoke=revoke_keys)
        else:
            list_valid_keys(api_keys.list_undecided(rt.db, rt.stamp()))
        if appliance_state.paused_at(rt.db) is None:
            held = rt.write(resume.probe_held_networks)
            print_note("Publishing was not paused.")
            if held:
                print_note("Deliveries to networks that refuse this app are retried now.")
            return
        resumed = rt.write(resume.resume, nothing_was_sent=nothing_was_sent)
    for sentence in alerts.resume_sentences(resumed):
        print_note(sentence)
    if nothing_was_sent and not resumed.restored:
        print_note("No backup was restored since the last resume, so --nothing-was-sent has no effect.")
    if resumed.scheduled:
        print_note(alerts.STILL_SCHEDULED)
        rows = [(post.id, format_time(post.scheduled_at), post.body or "") for post in resumed.scheduled]
        print_table(("Post", "Scheduled", "Text"), rows, "")
    too_late = alerts.too_late_sentence(resumed.too_late, rt.settings)
    if too_late:
        print_note(too_late)


def list_valid_keys(keys: Sequence[ApiKeyRow]) -> None:
    if keys:
        print_note(f"{alerts.valid_keys_sentence(keys)} {alerts.KEYS_MAY_BE_REVOKED}")
        for key in keys:
            print_note(f"  {alerts.describe_key(key)}")
        print_note(alerts.decide_keys(Surface.SHELL))


def _settle_keys(rt: Runtime, *, revoke: bool) -> None:
    settled = rt.write(api_keys.revoke_restored if revoke else api_keys.keep_restored)
    if not settled:
        print_note("There are no API keys of a restored backup to keep or revoke.")
        return
    keys = units.count(len(settled), "API key", "API keys")
    print_note(f"{'Revoked' if revoke else 'Kept'} {keys} of the restored backup:")
    for key in settled:
        print_note(f"  {alerts.describe_key(key)}")


def note_paused(rt: Runtime) -> None:
    sentences = alerts.paused_sentences(rt.db, Surface.SHELL)
    if sentences is not None:
        print_note(" ".join(sentences))


# --- the password -----------------------------------------------------------------------------------------------------


@click.command()
@pass_command_context
def set_password(context: CommandContext) -> None:
    """Set the dashboard's password.

    The command asks for the password twice, or reads it from a pipe. Every browser must sign in again.
    """
    with context.open() as rt:
        if sys.stdin.isatty():
            password = ask_hidden("Password")
            repeated = ask_hidden("Repeat password")
        else:
            password = repeated = sys.stdin.readline().rstrip("\r\n")
            if not password:
                again = commands.line("admin", "set-password")
                raise CommandError(
                    "No password was given, and there is no terminal.", f"Run `{again}` in a terminal{EXEC_TERMINAL}."
                )
        rt.write(sign_in.set_password, sign_in.hash_password(password, repeated))
        print_note(f"The password is set. The dashboard is at {rt.settings.base_url}/")
        if not rt.settings.dashboard.enabled:
            print_note(f"The dashboard is disabled. Set dashboard.enabled to true. {commands.restart()}.")


# --- the secret key ---------------------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--end-addresses",
    is_flag=True,
    help="Expire all URLs for uploads and media now, for example if another person has the key.",
)
@pass_command_context
def rotate_secret(context: CommandContext, end_addresses: bool) -> None:
    """Create a new secret.key, and encrypt all stored secrets again. Stop socialpub first.

    Accounts stay connected. The previous key is kept beside the new key, because earlier backups need the previous key.
    """
    settings = context.settings()
    file_faults.refuse_root(settings)
    with act_as(COMMAND):
        done = secret_rotation.rotate(settings, context.clock(), keep_urls=not end_addresses)
    print_line(str(settings.secret_key_file))
    print_note(f"The new key is in place. Keep a copy elsewhere. The previous key is now {done.former_key}.")
    print_note("Earlier backups and the database from before an upgrade can be restored only with the previous key.")
    print_note("Keep the previous key elsewhere, and destroy it with the last of these backups.")
    print_note(f"Make a new backup now: `{commands.line('backup', 'FILE')}`")
    if end_addresses:
        print_note(
            "This command made all earlier URLs of uploads and media invalid. A delivery fails if its network still "
            "needs such a URL."
        )
    else:
        print_note(
            f"URLs for uploads and media stay valid until they expire, the last at {format_time(done.urls_end_at)}."
        )
    print_note(f"{commands.start()}.")


# --- notifications ----------------------------------------------------------------------------------------------------


@click.command("notify-test")
@pass_command_context
def notify_test(context: CommandContext) -> None:
    """Send a test message to every service of `[notify] urls` and of the dashboard, and print each result.

    The exit code is 1 if a service did not accept the message.
    """
    with context.open() as rt:
        if not send.list_services(rt):
            raise OperatorError(
                "No notification address is set: notify.urls is empty.",
                "Add an address under System in the dashboard, or under [notify] in the configuration. "
                f"`{commands.line('config', '--example')}` shows how.",
            )
        send.refuse_wrong_addresses(rt.settings)
        failed = 0
        for service, failure in notifier.send_test(rt):
            print_line(f"{service.name}: {'sent' if failure is None else f'not sent, {failure}'}")
            failed += failure is not None
    if failed:
        raise CommandError(
            f"{units.count(failed, 'service', 'services')} did not accept the message.",
            "Check their addresses under System in the dashboard or in [notify] urls: https://appriseit.com/services/",
        )
