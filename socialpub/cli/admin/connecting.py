"""`connect-profile` and `refresh-profile`: an account's consent, and the tokens that came of it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.errors import Failure
from socialpub.cli.output import moment, say, working

if TYPE_CHECKING:
    from socialpub.accounts.connect import Begun
    from socialpub.accounts.profiles import Connected
    from socialpub.runtime import Runtime

GLANCE_SECONDS = 0.5
MOST_PASTES = 5
DONE = "Nothing was connected, and the consent page leads nowhere any more."


@click.command(short_help="Connect an account through the network's consent page.")
@click.argument("provider")
@click.option("--name", metavar="LABEL", help="What the profile is called here. Default: the account's own name.")
@click.option(
    "--profile", "profile_id", type=ID, metavar="ID", help="Connect this profile again, and no other account."
)
@click.option("--paste", is_flag=True, help="For a server without a browser: paste the address that yours ends at.")
@pass_appliance
def connect_profile(appliance: Appliance, provider: str, name: str | None, profile_id: str | None, paste: bool) -> None:
    """Connect an account, and print the profile's id.

    Shows the address of the network's consent page and waits until your browser has come back from it, which needs
    `socialpub serve` (or `web`) to run; with --paste you copy the address by hand. The same account again gives its
    profile new tokens.
    """
    from socialpub.accounts import connect, profiles

    with appliance.open() as rt:
        if provider not in rt.providers:
            raise click.BadParameter(f"{provider!r} is none of {', '.join(rt.providers)}.", param_hint="PROVIDER")
        label = rt.providers[provider].label
        if not paste and not _is_answered(rt):
            raise Failure(
                f"Nothing answers at {rt.settings.base_url}, where {label} would send your browser back to.",
                "Start `socialpub serve` and try again, or connect by hand: add --paste",
            )
        begun = connect.begin(rt, provider, name, profile_id)
        _show(begun, label)
        with _given_up_at_the_end(rt, begun):
            finished = _pasted(rt, provider, begun) if paste else _awaited(rt, begun)
        click.echo(finished.profile_id)
        profile = profiles.find(rt.reader, finished.profile_id)
        assert profile is not None
        account = f"@{profile.username}" if profile.username else profile.account_id
        done = "has new tokens and is active" if finished.revived else "is connected"
        say(f"{label} account {account} {done}, as “{profile.name}”.")
        for sentence in finished.missing:
            say(f"Note: {sentence}")


@click.command(short_help="Get a profile new tokens now.")
@click.argument("profile_id", metavar="ID", type=ID)
@pass_appliance
def refresh_profile(appliance: Appliance, profile_id: str) -> None:
    """Trade the refresh token for new tokens now, whether or not the present ones still work.

    Not needed in daily life: tokens are renewed before they are used, and before they lapse while nobody uses them.
    """
    from socialpub.accounts import profiles, remedies, tokens
    from socialpub.core.errors import NotFound
    from socialpub.providers.errors import ProviderError
    from socialpub.providers.job import Withdrawn

    with appliance.open() as rt:
        profile = profiles.find(rt.reader, profile_id)
        if profile is None:
            raise NotFound("There is no profile with this id.")
        provider = rt.providers[profile.provider]
        try:
            with working(f"Asking {provider.label} for new tokens"):
                tokens.renew(rt, profile_id)
        except Withdrawn:
            raise Failure(
                f"The profile “{profile.name}” is disconnected.",
                f"Connect the account as a new profile: {remedies.reconnect(profile.provider)}",
            ) from None
        except tokens.Paused as paused:
            raise Failure(paused.message, "Go on with: socialpub admin resume") from None
        except ProviderError as error:
            raise Failure(error.message, remedies.after_failure(provider, error)) from None
        profile = profiles.find(rt.reader, profile_id)
        assert profile is not None
        until = f", good until {moment(profile.access_expires_at)}" if profile.access_expires_at else ""
        say(f"The profile “{profile.name}” has a new access token{until}.")
        if profile.refresh_expires_at:
            say(f"It can be renewed without you until {moment(profile.refresh_expires_at)}, and again from then on.")


def _is_answered(rt: "Runtime") -> bool:
    """Whether our web process runs: seen from here where a browser will look for it, or behind the proxy."""
    from socialpub.providers.errors import ProviderError

    for base in (rt.settings.base_url, f"http://{rt.settings.listen}"):
        try:
            if rt.http.call("GET", f"{base}/healthz", deadline_seconds=10).status == 200:
                return True
        except ProviderError:
            continue
    return False


def _show(begun: "Begun", label: str) -> None:
    say(f"{label} must know this redirect address, letter by letter:")
    say(f"  {begun.redirect_uri}")
    say("Open this page in a browser and give your consent:")
    say(f"\n  {begun.url}\n")
    say(f"It is good until {begun.expires_at:%H:%M} UTC and works once.")


@contextmanager
def _given_up_at_the_end(rt: "Runtime", begun: "Begun") -> Iterator[None]:
    """Whoever leaves before the end leaves nothing open behind."""

    from socialpub.accounts import consents

    try:
        yield
    except KeyboardInterrupt:
        raise Failure(DONE) from None
    finally:
        rt.write(consents.give_up, begun.id)  # changes nothing when it has ended already


def _awaited(rt: "Runtime", begun: "Begun") -> "Connected":
    """What became of it once the browser has come back to the web process."""
    with working("Waiting for your browser to come back (Ctrl-C to leave)"):
        while (finished := _ended(rt, begun)) is None:
            rt.stopping.wait(GLANCE_SECONDS)
    return finished


def _pasted(rt: "Runtime", provider: str, begun: "Begun") -> "Connected":
    """The address by hand; asked again while it is none. The web process may have been faster."""
    from socialpub.accounts import connect
    from socialpub.core.errors import OperatorError

    say("Then paste the address that the browser ended at, even if it shows an error there:")
    for _ in range(MOST_PASTES):
        line = sys.stdin.readline()
        finished = _ended(rt, begun)
        if finished is not None:
            return finished
        if not line:
            break
        if not line.strip():
            continue
        try:
            query = connect.read_answer(line)
        except OperatorError as error:
            say(f"{error.message} {error.hint or ''}")
            continue
        with working("Asking whose account this is"):
            return connect.finish(rt, provider, query, begun.id)
    raise Failure("No address was pasted. " + DONE)


def _ended(rt: "Runtime", begun: "Begun") -> "Connected | None":
    """How it ended; None while it has not. Raises Failure."""

    from socialpub.accounts import consents

    outcome = consents.outcome(rt, begun.id)
    if isinstance(outcome, consents.Failed):
        raise Failure(outcome.message, outcome.hint)
    return outcome
