"""The appliance as a whole: its API keys, its pauses, its password and secret key, and its database."""

import sys
from collections.abc import Sequence
from datetime import timedelta

import click

from socialpub.accounts import api_keys, hints, sign_in
from socialpub.accounts.hints import Surface
from socialpub.cli.admin import DURATION, ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import CommandError, ask_hidden, format_time, print_json, print_line, print_note, print_table
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
    """Start no delivery until `resume`. The API goes on accepting posts."""
    with context.open() as rt:
        since = appliance_state.paused_at(rt.reader)
        rt.write(resume.pause)
    if since:
        print_note(f"Publishing was paused already, since {format_time(since)}.")
    else:
        print_note("Publishing is paused. Calls in progress are finished; nothing else starts.")
    print_note(f"To continue, {hints.resume()}.")


@click.command("resume")
@click.option(
    "--nothing-was-sent",
    is_flag=True,
    help="After a restore: your word that the original sent nothing since the backup.",
)
@click.option("--revoke-keys", is_flag=True, help="After a restore: revoke the API keys that came with the backup.")
@click.option("--keep-keys", is_flag=True, help="After a restore: keep these keys, and end the report about them.")
@pass_command_context
def resume_publishing(context: CommandContext, nothing_was_sent: bool, revoke_keys: bool, keep_keys: bool) -> None:
    """Let deliveries start again; says what is too late.

    After a restore, what was due since the backup was made is looked up on the accounts first, and never sent; what is
    still scheduled is listed on standard output. The API keys that came with the backup are listed on standard error
    until you keep or revoke them. Keys created after the restore are not affected.
    """
    if revoke_keys and keep_keys:
        raise click.UsageError("--revoke-keys and --keep-keys exclude each other.")
    with context.open() as rt:
        if revoke_keys or keep_keys:
            _settle_keys(rt, revoke=revoke_keys)
        else:
            list_valid_keys(api_keys.list_undecided(rt.reader, rt.stamp()))
        if appliance_state.paused_at(rt.reader) is None:
            held = rt.write(resume.probe_held_networks)
            print_note("Publishing was not paused.")
            if held:
                print_note("What networks refuse this app is tried again at once.")
            return
        resumed = rt.write(resume.resume, nothing_was_sent=nothing_was_sent)
    for sentence in alerts.resume_sentences(resumed):
        print_note(sentence)
    if nothing_was_sent and not resumed.restored:
        print_note("Nothing was restored here since the last resume, so --nothing-was-sent changes nothing.")
    if resumed.scheduled:
        print_note(alerts.STILL_SCHEDULED)
        rows = [(post.id, format_time(post.scheduled_at), post.body or "") for post in resumed.scheduled]
        print_table(("Post", "Scheduled", "Text"), rows, "")
    too_late = alerts.too_late_sentence(resumed.too_late, rt.settings)
    if too_late:
        print_note(too_late)


def list_valid_keys(keys: Sequence[ApiKeyRow]) -> None:
    """List the keys of a restored backup, and how the owner settles them."""
    if keys:
        print_note(f"{alerts.valid_keys_sentence(keys)} {alerts.KEYS_MAY_BE_REVOKED}")
        for key in keys:
            print_note(f"  {alerts.describe_key(key)}")
        print_note(alerts.decide_keys(Surface.SHELL))


def _settle_keys(rt: Runtime, *, revoke: bool) -> None:
    settled = rt.write(api_keys.revoke_restored if revoke else api_keys.keep_restored)
    if not settled:
        print_note("No valid API key of a restored backup waits for a decision.")
        return
    keys = units.count(len(settled), "API key", "API keys")
    print_note(f"{'Revoked' if revoke else 'Kept'} {keys} of the restored backup:")
    for key in settled:
        print_note(f"  {alerts.describe_key(key)}")


def note_paused(rt: Runtime) -> None:
    """Note that publishing is paused, if it is."""
    sentences = alerts.paused_sentences(rt.reader, Surface.SHELL)
    if sentences is not None:
        print_note(" ".join(sentences))


# --- the password -----------------------------------------------------------------------------------------------------


@click.command()
@pass_command_context
def set_password(context: CommandContext) -> None:
    """Set the dashboard's password. It is asked for twice, or read from a pipe; every browser has to sign in again."""
    with context.open() as rt:
        if sys.stdin.isatty():
            given = ask_hidden("Password")
            repeated = ask_hidden("Repeat password")
        else:
            given = repeated = sys.stdin.readline().rstrip("\r\n")
            if not given:
                again = commands.line("admin", "set-password")
                raise CommandError("No password was given: there is no terminal to ask at.", f"Run `{again}`.")
        rt.write(sign_in.set_password, sign_in.hash_password(given, repeated))
        print_note(f"The password is set. The dashboard is at {rt.settings.base_url}/")
        if not rt.settings.dashboard.enabled:
            print_note(f"The dashboard is off. Set dashboard.enabled to true. {commands.here().restart()}.")


# --- the secret key ---------------------------------------------------------------------------------------------------


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
    storage.refuse_root(settings)
    with act_as(COMMAND):
        done = secret_key.rotate(settings, context.clock(), keep_urls=not end_addresses)
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
    print_note(f"{commands.here().start()}.")


# --- notifications ----------------------------------------------------------------------------------------------------


@click.command("notify-test")
@pass_command_context
def notify_test(context: CommandContext) -> None:
    """Send a test message to every service of `[notify] urls` and of the dashboard, and say what became of each.

    Ends with 1 when one of them did not accept it.
    """
    with context.open() as rt:
        if not send.list_services(rt):
            raise OperatorError(
                "There is no address to send a message to: notify.urls is empty.",
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


# --- the database -----------------------------------------------------------------------------------------------------


@click.command()
@pass_command_context
def compact(context: CommandContext) -> None:
    """Write the database anew, as small as its rows are. Only while socialpub is stopped.

    It is needed once, for a database that an older version made; a new one shrinks by itself.
    """
    with context.open() as rt:
        found = storage.compact(rt)
    print_note(f"The database has {units.size(found.after_bytes)} now; it had {units.size(found.before_bytes)}.")
    print_note("From now on it shrinks by itself when much was removed.")


# --- API keys ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("name")
@click.option("--scope", type=click.Choice(["read", "write"]), default="write", help="write includes read (default).")
@click.option("--provider", "providers", metavar="P", multiple=True, help="Only profiles of this network; repeatable.")
@click.option("--profile", "profiles", type=ID, metavar="ID", multiple=True, help="Only this profile; repeatable.")
@click.option("--expires-in", type=DURATION, metavar="90d", help="Default: until it is revoked.")
@pass_command_context
def create_key(
    context: CommandContext,
    name: str,
    scope: str,
    providers: tuple[str, ...],
    profiles: tuple[str, ...],
    expires_in: timedelta | None,
) -> None:
    """Make an API key and print it. It is shown only this once."""
    with context.open() as rt:
        expires_at = rt.now() + expires_in if expires_in else None
        key = rt.write(api_keys.create, name, scope, providers, profiles, expires_at)
    print_line(key)
    may = "read and write" if scope == "write" else "only read"
    limits = [*(f"profiles of {provider}" for provider in providers), *(f"profile {id}" for id in profiles)]
    within = f", within {', '.join(limits)}" if limits else ""
    until = f", until {format_time(expires_at.isoformat())}" if expires_at else ""
    print_note(f"This key may {may}{within}{until}. Save it now: it is not shown again.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_keys(context: CommandContext, as_json: bool) -> None:
    """Show the keys, never their secrets."""
    with context.open() as rt:
        found = api_keys.list_all(rt.reader)
        now = rt.stamp()
    if as_json:
        print_json([_shape(key) for key in found])
        return
    rows = [
        (
            key.id,
            key.name,
            key.scope,
            ", ".join((*(key.providers or ()), *(key.profiles or ()))) or "everything",
            _state(key, now),
            format_time(key.created_at),
            format_time(key.last_used_at) or "never",
        )
        for key in found
    ]
    columns = ("ID", "Name", "Scope", "Limited to", "State", "Created", "Last used")
    print_table(columns, rows, f"There is no key yet. Make one with `{commands.line('admin', 'create-key', 'NAME')}`.")


@click.command()
@click.argument("key_id", metavar="ID")
@pass_command_context
def revoke_key(context: CommandContext, key_id: str) -> None:
    """Refuse a key from now on. ID is the part between spk_ and _."""
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


def _state(key: ApiKeyRow, now: str) -> str:
    if key.revoked_at:
        return f"revoked {format_time(key.revoked_at)}"
    if key.expires_at:
        return f"{'expired' if key.expires_at <= now else 'until'} {format_time(key.expires_at)}"
    return "valid"
