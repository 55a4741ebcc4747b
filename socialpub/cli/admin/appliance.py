"""The commands for the whole appliance: API keys, pauses, password, secret key, notifications and database."""

import sys
from collections.abc import Sequence
from datetime import timedelta

import click

from socialpub.accounts import api_keys, hints, key_limits, sign_in
from socialpub.accounts.hints import Surface
from socialpub.cli.admin import DURATION, ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import (
    CommandError,
    ask_hidden,
    format_time,
    print_json,
    print_line,
    print_note,
    print_table,
)
from socialpub.core import commands, units
from socialpub.core.actor import COMMAND, act_as
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.models import ApiKeyRow
from socialpub.ops import alerts, secret_key, storage
from socialpub.ops.notify import send
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime


@click.command()
@pass_command_context
def pause(context: CommandContext) -> None:
    """Pause publishing until `resume`. The API continues to accept posts."""
    with context.open() as rt:
        since = appliance_state.paused_at(rt.reader)
        rt.write(resume.pause)
    if since:
        print_note(f"Publishing has already been paused since {format_time(since)}.")
    else:
        print_note("Publishing is paused. Calls in progress finish, and no other deliveries start.")
    print_note(f"To continue, {hints.resume()}.")


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
            list_valid_keys(api_keys.list_undecided(rt.reader, rt.stamp()))
        if appliance_state.paused_at(rt.reader) is None:
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
    sentences = alerts.paused_sentences(rt.reader, Surface.SHELL)
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
            given = ask_hidden("Password")
            repeated = ask_hidden("Repeat password")
        else:
            given = repeated = sys.stdin.readline().rstrip("\r\n")
            if not given:
                again = commands.line("admin", "set-password")
                raise CommandError("No password was given, and there is no terminal.", f"Run `{again}` in a terminal.")
        rt.write(sign_in.set_password, sign_in.hash_password(given, repeated))
        print_note(f"The password is set. The dashboard is at {rt.settings.base_url}/")
        if not rt.settings.dashboard.enabled:
            print_note(f"The dashboard is disabled. Set dashboard.enabled to true. {commands.here().restart()}.")


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
    storage.refuse_root(settings)
    with act_as(COMMAND):
        done = secret_key.rotate(settings, context.clock(), keep_urls=not end_addresses)
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
    print_note(f"{commands.here().start()}.")


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
        for service, failure in send.send_test(rt):
            print_line(f"{service.name}: {'sent' if failure is None else f'not sent, {failure}'}")
            failed += failure is not None
        unknown = send.describe_outdated_processes(rt, Surface.SHELL)
        if unknown is not None:
            print_note(unknown)
    if failed:
        raise CommandError(
            f"{units.count(failed, 'service', 'services')} did not accept the message.",
            "Check their addresses under System in the dashboard or in [notify] urls: https://appriseit.com/services/",
        )


# --- API keys ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("name")
@click.option(
    "--scope", type=click.Choice(["read", "write"]), default="write", help="Default: write, which includes read."
)
@click.option(
    "--provider", "providers", metavar="P", multiple=True, help="Only profiles of this network, or all. Repeatable."
)
@click.option("--profile", "profiles", type=ID, metavar="ID", multiple=True, help="Only this profile. Repeatable.")
@click.option("--expires-in", type=DURATION, metavar="90d", help="Default: no expiry.")
@click.option(
    "--posts-per-day",
    type=click.IntRange(1, api_keys.MAX_POSTS_PER_DAY),
    metavar="N",
    help="At most N posts in 24 hours. Each profile of a post counts.",
)
@click.option("--approval", is_flag=True, help="Each post of the key waits until you approve it.")
@pass_command_context
def create_key(
    context: CommandContext,
    name: str,
    scope: str,
    providers: tuple[str, ...],
    profiles: tuple[str, ...],
    expires_in: timedelta | None,
    posts_per_day: int | None,
    approval: bool,
) -> None:
    """Create an API key and print it. The key is shown only once."""
    with context.open() as rt:
        expires_at = rt.now() + expires_in if expires_in else None
        key = rt.write(
            api_keys.create,
            name,
            scope,
            providers,
            profiles,
            expires_at,
            posts_per_day=posts_per_day,
            approval=approval,
        )
        unseen = [] if providers else [rt.providers[network] for network in api_keys.list_extensions(rt)]
    print_line(key)
    may = "read and write" if scope == "write" else "only read"
    networks = ["every network" if provider == api_keys.ALL else provider for provider in providers]
    limits = [*(f"profiles of {network}" for network in networks), *(f"profile {id}" for id in profiles)]
    within = f", within {', '.join(limits)}" if limits else ""
    until = f", until {format_time(expires_at.isoformat())}" if expires_at else ""
    print_note(f"This key may {may}{within}{until}. Save the key now: it is not shown again.")
    if of_posts := key_limits.describe(posts_per_day, approval=approval):
        print_note(of_posts)
    for network in unseen:
        print_note(f"This key does not see {network.label}. A key with --provider {network.name} or all sees it.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_keys(context: CommandContext, as_json: bool) -> None:
    """List the keys without their secrets."""
    with context.open() as rt:
        found = api_keys.list_all(rt.reader)
        now, extensions = rt.stamp(), api_keys.list_extensions(rt)
        networks = [name for name in rt.providers if name not in extensions] if extensions else []
    if as_json:
        print_json([_shape(key) for key in found])
        return
    rows = [
        (
            key.id,
            key.name,
            key.scope,
            _describe_scope(key, networks),
            _state(key, now),
            format_time(key.created_at),
            format_time(key.last_used_at) or "never",
        )
        for key in found
    ]
    columns = ("ID", "Name", "Scope", "Limited to", "State", "Created", "Last used")
    print_table(columns, rows, f"No keys yet. Create a key with `{commands.line('admin', 'create-key', 'NAME')}`.")


@click.command()
@click.argument("key_id", metavar="ID")
@pass_command_context
def revoke_key(context: CommandContext, key_id: str) -> None:
    """Revoke a key. ID is the part between spk_ and _."""
    # The whole key is accepted as well.
    key_id = key_id.removeprefix("spk_").partition("_")[0]
    with context.open() as rt:
        rt.write(api_keys.revoke, key_id)
    print_note(f"The key {key_id} is revoked.")


def _shape(key: ApiKeyRow) -> dict[str, object]:
    """Return the fields in camelCase, without those that are None."""
    shown = {name: value for name, value in key.__data__.items() if value is not None and name != "secret_hash"}
    words = {tuple(name.split("_")): value for name, value in shown.items()}
    return {first + "".join(map(str.title, more)): value for (first, *more), value in words.items()}


def _describe_scope(key: ApiKeyRow, networks: Sequence[str]) -> str:
    """Return what limits the key. `networks` are those of a key without providers, if they are not every network."""
    covered = key.providers or (() if key.profiles else networks)
    shown = () if api_keys.ALL in covered else covered
    return ", ".join((*shown, *(key.profiles or ()), *_limits(key))) or "everything"


def _limits(key: ApiKeyRow) -> list[str]:
    return key_limits.list_names(key.posts_per_day, approval=key.approval)


def _state(key: ApiKeyRow, now: str) -> str:
    if key.revoked_at:
        return f"revoked {format_time(key.revoked_at)}"
    if key.expires_at:
        return f"{'expired' if key.expires_at <= now else 'until'} {format_time(key.expires_at)}"
    return "valid"
