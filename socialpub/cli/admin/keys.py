"""`socialpub admin create-key`, `list-keys` and `revoke-key`."""

from collections.abc import Sequence
from datetime import timedelta

import click

from socialpub.accounts import api_keys, key_limits
from socialpub.cli.admin import DURATION, ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import format_time, print_json, print_line, print_note, print_table
from socialpub.core import commands
from socialpub.db.models import ApiKeyRow


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
        keys = api_keys.list_all(rt.db)
        now, extensions = rt.stamp(), api_keys.list_extensions(rt)
        networks = [name for name in rt.providers if name not in extensions] if extensions else []
    if as_json:
        print_json([_shape(key) for key in keys])
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
        for key in keys
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
    shape = {name: value for name, value in key.__data__.items() if value is not None and name != "secret_hash"}
    words = {tuple(name.split("_")): value for name, value in shape.items()}
    return {first + "".join(map(str.title, more)): value for (first, *more), value in words.items()}


def _describe_scope(key: ApiKeyRow, networks: Sequence[str]) -> str:
    """Return what limits the key. `networks` are those of a key without providers, if they are not every network."""
    covered = key.providers or (() if key.profiles else networks)
    named = () if api_keys.ALL in covered else covered
    limits = key_limits.list_names(key.posts_per_day, approval=key.approval)
    return ", ".join((*named, *(key.profiles or ()), *limits)) or "everything"


def _state(key: ApiKeyRow, now: str) -> str:
    if key.revoked_at:
        return f"revoked {format_time(key.revoked_at)}"
    if key.expires_at:
        return f"{'expired' if key.expires_at <= now else 'until'} {format_time(key.expires_at)}"
    return "valid"
