"""`import-profile`, `list-profiles`, `rename-profile`, `disconnect-profile`, `set-options`."""

import json
from typing import TYPE_CHECKING, TextIO

import click

from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.output import moment, say, show_json, show_table, working

if TYPE_CHECKING:
    from socialpub.db.database import Row


@click.command(short_help="Connect an account with tokens you have.")
@click.argument("provider")
@click.option("--name", metavar="LABEL", help="What the profile is called here. Default: the account's own name.")
@click.option("--credentials", type=click.File("r"), default="-", metavar="FILE|-", help="Default: standard input.")
@pass_appliance
def import_profile(appliance: Appliance, provider: str, name: str | None, credentials: TextIO) -> None:
    """Connect an account with tokens you already have, and print the profile's id.

    The credentials are JSON: {"accessToken", "refreshToken"?, "expiresAt"?, "refreshExpiresAt"?, "scope"?}. The same
    account again gives its profile new tokens.
    """
    from socialpub.accounts import connect, profiles
    from socialpub.accounts import credentials as forms

    with appliance.open() as rt:
        if provider not in rt.providers:
            raise click.BadParameter(f"{provider!r} is none of {', '.join(rt.providers)}.", param_hint="PROVIDER")
        if credentials.isatty():
            say("Paste the credentials (JSON), then press Ctrl-D:")
        grant = forms.read(credentials.read())
        with working(f"Asking {rt.providers[provider].label} whose tokens these are"):
            imported = connect.import_account(rt, provider, grant, name)
        click.echo(imported.profile_id)
        profile = profiles.find(rt.reader, imported.profile_id)
        assert profile is not None
        account = f"@{profile.username}" if profile.username else profile.account_id
        done = "has new tokens and is active" if imported.revived else "is connected"
        say(f"{rt.providers[provider].label} account {account} {done}, as “{profile.name}”.")
        for sentence in imported.missing:
            say(f"Note: {sentence}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_appliance
def list_profiles(appliance: Appliance, as_json: bool) -> None:
    """Show the connected accounts."""
    from socialpub.accounts import profiles, renewal

    with appliance.open() as rt:
        found = profiles.list_all(rt.reader)
        warnings = [renewal.warning(profile, rt.now()) for profile in found]
    if as_json:
        show_json([_shape(profile, warning) for profile, warning in zip(found, warnings, strict=True)])
        return
    rows = [
        (
            profile["id"],
            profile["name"],
            profile["provider"],
            f"@{profile['username']}" if profile["username"] else "",
            profile["status"],
            moment(profile["expires_at"]),
            str(profile["posts_count"]),
            _notes(profile, warning),
        )
        for profile, warning in zip(found, warnings, strict=True)
    ]
    columns = ("ID", "Name", "Network", "Account", "Status", "Expires", "Posts", "Notes")
    show_table(columns, rows, "No account is connected yet. Connect one with: socialpub admin connect-profile PROVIDER")


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("name")
@pass_appliance
def rename_profile(appliance: Appliance, profile_id: str, name: str) -> None:
    """Call a profile NAME from now on."""
    from socialpub.accounts import profiles

    with appliance.open() as rt:
        rt.write(profiles.rename, profile_id, name)
        say(f"The profile {profile_id} is now called “{name.strip()}”.")


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@pass_appliance
def disconnect_profile(appliance: Appliance, profile_id: str) -> None:
    """End the connection to an account. Its scheduled posts then fail, saying so."""
    from socialpub.accounts import profiles

    with appliance.open() as rt:
        rt.write(profiles.disconnect, profile_id)
        say("The profile is disconnected: nothing is sent with its tokens any more.")
        say("The worker has them revoked where the network allows it, and erases them within the hour.")
        say("Whether the app keeps its place in the account's own settings is up to the network: look there.")


@click.command(short_help="Store options that posts to a profile carry.")
@click.argument("profile_id", metavar="ID", type=ID)
@click.argument("pairs", metavar="KEY=VALUE...", nargs=-1, required=True)
@pass_appliance
def set_options(appliance: Appliance, profile_id: str, pairs: tuple[str, ...]) -> None:
    """Store options that every post to this profile carries unless it says otherwise. `KEY=` removes one.

    Prints what is stored then, as JSON. It holds for posts that are accepted from now on.
    """
    from socialpub.accounts import profile_options

    given = profile_options.read_pairs(pairs)
    with appliance.open() as rt:
        stored = rt.write(profile_options.set_options, profile_id, given)
    click.echo(json.dumps(stored, ensure_ascii=False))


_SHAPE = (
    ("id", "id"),
    ("name", "name"),
    ("provider", "provider"),
    ("status", "status"),
    ("username", "username"),
    ("pictureUrl", "picture_url"),
    ("expiresAt", "expires_at"),
    ("postsCount", "posts_count"),
    ("createdAt", "created_at"),
    ("updatedAt", "updated_at"),
    ("reason", "reason"),
)


def _shape(profile: "Row", warning: str | None) -> dict[str, object]:
    """The API's fields, and what only the owner sees: why the profile needs them, and the stored options."""
    shape = {name: profile[column] for name, column in _SHAPE if profile[column] is not None}
    if warning is not None:
        shape["warning"] = warning
    return {**shape, "options": json.loads(str(profile["options"]))}


def _notes(profile: "Row", warning: str | None) -> str:
    options = json.loads(str(profile["options"]))
    said = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    return "; ".join([warning, *said] if warning else said)
