"""`connect-profile` and `refresh-profile`: the consent of an account, and its tokens."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from socialpub.accounts import account_data, connect, consents, hints, profiles, tokens
from socialpub.accounts.connect import StartedConnection
from socialpub.accounts.consents import WrongAddress
from socialpub.accounts.profiles import Connected
from socialpub.cli.admin.arguments import ID, known_provider
from socialpub.cli.admin.profiles import print_connected
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import CommandError, format_time, print_note, spinner
from socialpub.core import commands
from socialpub.ops.doctor import addresses, machine
from socialpub.ops.doctor.addresses import Answering
from socialpub.providers.base import Withdrawn
from socialpub.providers.errors import ProviderError
from socialpub.runtime import Runtime

POLL_SECONDS = 0.5
MAX_PASTES = 5
NOTHING_CONNECTED = "Nothing was connected, and the address of the consent page is no longer valid."


@click.command()
@click.argument("provider_name", metavar="PROVIDER")
@click.option("--name", metavar="LABEL", help="What the profile is called here. Default: the account's own name.")
@click.option(
    "--profile", "profile_id", type=ID, metavar="ID", help="Connect this profile again, and no other account."
)
@click.option("--paste", is_flag=True, help="For a server without a browser: paste the address that yours ends at.")
@pass_command_context
def connect_profile(
    context: CommandContext, provider_name: str, name: str | None, profile_id: str | None, paste: bool
) -> None:
    """Connect an account, and print the profile's id.

    Shows the address of the network's consent page and waits until your browser has come back from it, which needs
    `socialpub serve` (or `web`) to run; with --paste you copy the address by hand. The same account again gives its
    profile new tokens.
    """
    with context.open() as rt:
        known_provider(rt, provider_name)
        _check_configuration_in_use(rt, provider_name)
        if not paste:
            _check_way_back(rt, provider_name)
        begun = connect.begin(rt, provider_name, name, profile_id)
        _explain(rt, provider_name, begun)
        with _give_up_at_the_end(rt, begun):
            finished = _paste(rt, provider_name, begun) if paste else _wait(rt, begun)
        print_connected(rt, finished)


@click.command()
@click.argument("profile_id", metavar="ID", type=ID)
@pass_command_context
def refresh_profile(context: CommandContext, profile_id: str) -> None:
    """Exchange the refresh token for new tokens now, and fetch the account data again: handle, name, picture, and what
    the account may post.

    Rarely needed: the worker renews tokens before they expire, and fetches the account data once a week.
    """
    with context.open() as rt:
        profile = profiles.get(rt.reader, profile_id)
        provider = rt.providers[profile.provider]
        try:
            if profile.refresh_token is not None:
                with spinner(f"Asking {provider.label} for new tokens"):
                    tokens.renew(rt, profile_id)
            with spinner(f"Asking {provider.label} for the account data"):
                changes = account_data.fetch(rt, profile_id)
            for sentence in changes or ["The account data has not changed."]:
                print_note(sentence)
            if profile.refresh_token is None:
                tokens.renew(rt, profile_id)  # raises with a hint
        except Withdrawn:
            raise CommandError(
                f"The profile “{profile.name}” is disconnected.",
                f"To connect the account as a new profile, {hints.connect(profile.provider)}.",
            ) from None
        except tokens.Paused as paused:
            raise CommandError(paused.message, f"To continue, {hints.resume()}.") from None
        except ProviderError as error:
            raise CommandError(error.message, hints.after_failure(provider, error)) from None
        profile = profiles.get(rt.reader, profile_id)
    until = f", valid until {format_time(profile.access_expires_at)}" if profile.access_expires_at else ""
    print_note(f"The profile “{profile.name}” has a new access token{until}.")
    if profile.refresh_expires_at:
        print_note(f"Until {format_time(profile.refresh_expires_at)} it can be renewed without you.")


def _check_configuration_in_use(rt: Runtime, provider_name: str) -> None:
    """Raise CommandError if the web server, which requests the tokens, runs with another configuration."""
    changed = machine.find_changed_keys(rt).get("web", [])
    matters = [key for key in changed if key == "base_url" or key.startswith(f"providers.{provider_name}.")]
    if matters:
        file = rt.settings.config_file
        raise CommandError(
            f"The web server runs with other values of {', '.join(matters)} than {file} has now.",
            f"{machine.restart_remedy()} {machine.SEEN_FROM_HERE}",
        )


def _check_way_back(rt: Runtime, provider_name: str) -> None:
    """Raise CommandError if the browser would not come back to our web server. A proxy may hide it from here."""
    base_url, label = rt.settings.base_url, rt.providers[provider_name].label
    if not consents.comes_back(rt.settings, provider_name):
        address = rt.settings.redirect_url(provider_name)
        raise CommandError(
            f"{label} sends your browser to {address}, which is not an address of this appliance.",
            "Connect by hand: add --paste",
        )
    who, how = addresses.find_answering(rt, base_url)
    if who is Answering.OTHER:
        raise CommandError(
            f"{base_url}, to which {label} would send your browser back, does not lead here: {how}.",
            "Correct base_url, or what answers there, and try again; or connect by hand: add --paste",
        )
    if (
        who is Answering.NOBODY
        and addresses.find_answering(rt, addresses.local_url(rt.settings))[0] is not Answering.THIS
    ):
        raise CommandError(
            f"Nothing answers at {base_url}, to which {label} would send your browser back.",
            f"{commands.start()}, and try again. To connect by hand, add --paste.",
        )


def _explain(rt: Runtime, provider_name: str, begun: StartedConnection) -> None:
    provider = rt.providers[provider_name]
    rule = consents.check_redirect_address(rt.settings, provider)
    if rule is not None and rule.remedy is not None:
        print_note(f"{rule.sentence} {rule.remedy}")
        print_note()
    print_note("Open this page in a browser and give your consent:")
    print_note()
    print_note(f"  {begun.url}")
    print_note()
    print_note(f"It is valid until {begun.expires_at:%H:%M} UTC and works once.")
    app = f"{rule.app_kind} app" if rule and rule.app_kind else "app"
    print_note(f"Your {app} at {provider.label} must have exactly this redirect address:")
    print_note(f"  {begun.redirect_uri}")


@contextmanager
def _give_up_at_the_end(rt: Runtime, begun: StartedConnection) -> Iterator[None]:
    """End the consent when the command ends, on Ctrl-C as well."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(NOTHING_CONNECTED) from None
    finally:
        rt.write(consents.give_up, begun.id)  # no effect after its end


def _wait(rt: Runtime, begun: StartedConnection) -> Connected:
    """Wait until the browser has come back to the web process."""
    with spinner("Waiting for your browser to come back (Ctrl-C to cancel)"):
        while (finished := _outcome(rt, begun)) is None:
            rt.stopping.wait(POLL_SECONDS)
    return finished


def _paste(rt: Runtime, provider_name: str, begun: StartedConnection) -> Connected:
    """Read the address, several times if it is wrong. The web process may finish before."""
    print_note("Then paste the address at which the browser ended, even if it shows an error there:")
    for _ in range(MAX_PASTES):
        line = sys.stdin.readline()
        finished = _outcome(rt, begun)
        if finished is not None:
            return finished
        if not line:
            break
        if not line.strip():
            continue
        try:
            query = consents.read_pasted_address(line, begun.redirect_uri)
        except WrongAddress as error:
            print_note(f"{error.message} {error.hint or ''}")
            continue
        with spinner("Asking whose account this is"):
            return connect.finish(rt, provider_name, query, begun.id)
    again = commands.line("admin", "connect-profile", provider_name, "--paste")
    raise CommandError(f"No address was pasted. {NOTHING_CONNECTED}", f"Run it at a terminal: `{again}`")


def _outcome(rt: Runtime, begun: StartedConnection) -> Connected | None:
    """Return the outcome, or None. Raise CommandError for a failure."""
    outcome = consents.outcome(rt, begun.id)
    if isinstance(outcome, consents.Failed):
        raise CommandError(outcome.message, outcome.hint)
    return outcome
