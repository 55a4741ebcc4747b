"""`create-key`, `list-keys`, `revoke-key`."""

from datetime import timedelta

import click

from socialpub.cli.admin.arguments import DURATION, ID
from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.output import moment, say, show_json, show_table


@click.command()
@click.argument("name")
@click.option("--scope", type=click.Choice(["read", "write"]), default="write", help="write includes read (default).")
@click.option("--provider", "providers", metavar="P", multiple=True, help="Only profiles of this network; repeatable.")
@click.option("--profile", "profiles", type=ID, metavar="ID", multiple=True, help="Only this profile; repeatable.")
@click.option("--expires-in", type=DURATION, metavar="90d", help="Default: until it is revoked.")
@pass_appliance
def create_key(
    appliance: Appliance,
    name: str,
    scope: str,
    providers: tuple[str, ...],
    profiles: tuple[str, ...],
    expires_in: timedelta | None,
) -> None:
    """Make an API key and print it. It is shown this once."""
    from socialpub.accounts import api_keys

    with appliance.open() as rt:
        expires_at = rt.now() + expires_in if expires_in else None
        key = rt.write(api_keys.create, name, scope, providers, profiles, expires_at)
        click.echo(key)
        may = "read and write" if scope == "write" else "only read"
        limits = [*(f"profiles of {provider}" for provider in providers), *(f"profile {id}" for id in profiles)]
        within = f", within {', '.join(limits)}" if limits else ""
        until = f", until {moment(expires_at.isoformat())}" if expires_at else ""
        say(f"This key may {may}{within}{until}. Keep it now: it is not shown again.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_appliance
def list_keys(appliance: Appliance, as_json: bool) -> None:
    """Show the keys, never their secrets."""
    from dataclasses import asdict

    from socialpub.accounts import api_keys

    with appliance.open() as rt:
        found = api_keys.list_all(rt.reader)
        now = rt.stamp()
    if as_json:
        shapes = []
        for key in found:
            fields = {_camel(name): value for name, value in asdict(key).items()}
            shapes.append({name: value for name, value in fields.items() if value is not None})
        show_json(shapes)
        return
    rows = [
        (
            key.id,
            key.name,
            key.scope,
            ", ".join((*(key.providers or ()), *(key.profiles or ()))) or "everything",
            _state(key.revoked_at, key.expires_at, now),
            moment(key.created_at),
            moment(key.last_used_at) or "never",
        )
        for key in found
    ]
    columns = ("ID", "Name", "Scope", "Limited to", "State", "Created", "Last used")
    show_table(columns, rows, "There is no key yet. Make one with: socialpub admin create-key NAME")


@click.command()
@click.argument("key_id", metavar="ID")
@pass_appliance
def revoke_key(appliance: Appliance, key_id: str) -> None:
    """Refuse a key from now on. ID is the part between spk_ and _."""
    from socialpub.accounts import api_keys

    # Whoever has the whole key at hand need not cut it.
    key_id = key_id.removeprefix("spk_").partition("_")[0]
    with appliance.open() as rt:
        rt.write(api_keys.revoke, key_id)
        say(f"The key {key_id} is revoked.")


def _state(revoked_at: str | None, expires_at: str | None, now: str) -> str:
    if revoked_at:
        return f"revoked {moment(revoked_at)}"
    if expires_at:
        return f"{'expired' if expires_at <= now else 'until'} {moment(expires_at)}"
    return "valid"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
