"""`create-key`, `list-keys`, `revoke-key`."""

from dataclasses import asdict
from datetime import timedelta

import click

from socialpub.accounts import api_keys
from socialpub.cli.admin.arguments import DURATION, ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_json, print_line, print_note, print_table
from socialpub.core import commands


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


def _shape(key: api_keys.Key) -> dict[str, object]:
    """Return the fields in camelCase, without those that are None."""
    words = {tuple(name.split("_")): value for name, value in asdict(key).items() if value is not None}
    return {first + "".join(map(str.title, more)): value for (first, *more), value in words.items()}


def _state(key: api_keys.Key, now: str) -> str:
    if key.revoked_at:
        return f"revoked {format_time(key.revoked_at)}"
    if key.expires_at:
        return f"{'expired' if key.expires_at <= now else 'until'} {format_time(key.expires_at)}"
    return "valid"
