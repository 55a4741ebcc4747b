"""The doctor's findings about the networks: the app's credentials, its redirect address, what the network does to it,
whether the network answers, and whether both clocks agree.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime

from socialpub.accounts import redirect_addresses
from socialpub.core import commands
from socialpub.core.clock import stamp
from socialpub.core.settings.loader import Settings
from socialpub.db.models import ProfileStatus
from socialpub.db.transaction import Row
from socialpub.ops import web_address
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.providers import registry
from socialpub.providers.errors import NotSent, ProviderError
from socialpub.providers.protocol import Provider
from socialpub.providers.responses import HttpResponse
from socialpub.runtime import Runtime

MAX_SKEW = timedelta(minutes=2)
"""Clocks may differ by so much; signed addresses and what is read back allow for it."""
CALL_SECONDS = 10.0
SET_CLOCK = "Set the clock, and keep it set with NTP (timedatectl set-ntp true)."


def before_opening(settings: Settings) -> list[Finding]:
    """What the configuration alone shows, for an owner who is about to register an app."""
    providers = registry.build(settings.providers).values()
    return [finding for one in providers if _is_set_up(settings, one) for finding in _check_app(settings, one, ())]


def check(rt: Runtime, connected: Sequence[Row]) -> Iterator[Finding]:
    """Every finding. `connected` are the profiles that are not disconnected. Calls the networks."""
    for name, provider in rt.providers.items():
        section = getattr(rt.settings.providers, name)
        missing = section.missing_keys()
        profiles = [row for row in connected if row["provider"] == name]
        if missing and profiles and section.half_given() is None:
            keys, are = " and ".join(missing), "is" if len(missing) == 1 else "are"
            message = f"{provider.label} has profiles, but {keys} of its app {are} empty: no token can be renewed."
            yield problem("credentials", message, f"Set {keys} in [providers.{name}]; the app's page shows it.")
        elif missing:
            continue
        else:
            yield from _check_app(rt.settings, provider, profiles)
        yield from _check_connection(rt, provider.label, section.api_url, bool(profiles))


def _is_set_up(settings: Settings, provider: Provider) -> bool:
    return not getattr(settings.providers, provider.name).missing_keys()


def _check_app(settings: Settings, provider: Provider, profiles: Sequence[Row]) -> Iterator[Finding]:
    """The redirect address, and what the network does to this app."""
    rule = redirect_addresses.check(settings, provider)
    if rule is not None and rule.remedy is None:
        yield ok("redirect address", rule.sentence)
    elif rule is not None and rule.remedy is not None:
        # An account that works needs the address at its next consent, which may be a year away.
        works = bool(profiles) and all(row["status"] == ProfileStatus.ACTIVE for row in profiles)
        finding = note if works else problem
        yield finding("redirect address", rule.sentence, rule.remedy)
    if limits := provider.app_limits():
        yield note("app", " ".join((*limits.sentences, limits.why)), limits.remedy)


def _check_connection(rt: Runtime, label: str, api_url: str, used: bool) -> Iterator[Finding]:
    """Whether the network can be reached at all; what it answers without a token does not matter."""
    try:
        answer = rt.http.call("GET", api_url, deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        finding = problem if used else note
        yield finding("network", f"{label}: {error.message}", _unreachable(api_url))
    except ProviderError as error:
        yield note("network", f"{label} gave no usable answer: {error.message}", "Try again in a while.")
    else:
        yield ok("network", f"{label} answers.")
        yield from _compare_clocks(rt, label, answer)


def _unreachable(api_url: str) -> str:
    """What to do about an api_url at which nothing answers."""
    if web_address.is_of_this_machine(api_url):
        return f"Nothing answers at {api_url}. If that is the sandbox, start it: `{commands.line('sandbox')}`"
    return "Check this machine's network and DNS, and api_url."


def _compare_clocks(rt: Runtime, label: str, answer: HttpResponse) -> Iterator[Finding]:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return
    if theirs.tzinfo is not None and abs(theirs - rt.now()) > MAX_SKEW:
        message = f"The clock of {label} shows {stamp(theirs)}, and this machine's clock {stamp(rt.now())}."
        yield problem("clock", message, SET_CLOCK)
