"""Checks of `base_url`, the proxies and the networks.

The web process records peers that send X-Forwarded-For and are not in `[proxies] trusted`. All callers behind such a
proxy share one IP address and its limits. Anyone can send the header, so a public peer is only a note.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from socialpub.accounts import profiles as accounts
from socialpub.accounts import redirects
from socialpub.core import commands
from socialpub.core.clock import parse, stamp
from socialpub.core.sd_notify import format_host
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.networks import NetworkSection
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.ops.health import Finding, note, ok, problem, problem_of
from socialpub.providers import registry
from socialpub.providers.base import Provider
from socialpub.providers.responses import NotSent, ProviderError, json_object, text_at
from socialpub.runtime import Runtime

# --- proxies ---------------------------------------------------------------------------------------------------------

REPORTED_FOR = timedelta(days=1)
"""The time for which `doctor` reports a peer after the peer's last recorded request."""


def trust_remedy(peer: str, trusted: Sequence[str]) -> str:
    wanted = ", ".join(f'"{proxy}"' for proxy in (*trusted, peer))
    return f"If {peer} is your reverse proxy, set [proxies] trusted = [{wanted}]. {commands.restart()}."


def store_untrusted_proxies(rt: Runtime, tx: Database, seen_at: Mapping[str, str]) -> None:
    """Replace the recorded peers. A peer is an IP address, or "unix" for a socket in the file system."""
    appliance_state.put(tx, appliance_state.UNTRUSTED_PROXIES, json.dumps(seen_at))


def read_untrusted_proxies(db: Database) -> dict[str, str]:
    """Return the instant of a request by peer. The last request may be an hour later."""
    return dict(json.loads(appliance_state.get(db, appliance_state.UNTRUSTED_PROXIES) or "{}"))


def is_public(peer: str) -> bool:
    """Return whether the peer has a public IP address, which is rarely the owner's proxy."""
    try:
        return ip_address(peer).is_global
    except ValueError:
        return False


def check_untrusted_proxies(rt: Runtime) -> Iterator[Finding]:
    for peer, seen_at in read_untrusted_proxies(rt.db).items():
        if rt.now() - parse(seen_at) > REPORTED_FOR:
            continue
        message = f"X-Forwarded-For came from {peer} at {seen_at}. This peer is not in [proxies] trusted."
        how = f"{trust_remedy(peer, rt.settings.proxies.trusted)} Otherwise, "
        if is_public(peer):
            yield note("proxies", f"{message} The header was not used.", f"{how}no action is needed.")
        else:
            shared = "All callers behind this peer count as one IP address."
            yield problem("proxies", f"{message} {shared}", f"{how}find the program that sends the header.")


# --- base_url --------------------------------------------------------------------------------------------------------

CALL_SECONDS = 10.0


class Answering(StrEnum):
    THIS = "this appliance"
    OTHER = "something else"
    NOTHING = "nothing"


def find_answering(rt: Runtime, base: str) -> tuple[Answering, str]:
    """Return which program answers at `{base}/healthz`, and the reason. Blocks."""
    try:
        response = rt.http.call("GET", f"{base}/healthz", deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        return Answering.NOTHING, error.message
    except ProviderError as error:
        return Answering.OTHER, error.message
    instance = text_at(json_object(response), "instance")
    if instance == rt.instance_id:
        return Answering.THIS, ""
    program = "another socialpub answers" if instance else f"another program answers with HTTP {response.status}"
    return Answering.OTHER, program


def answers_here(rt: Runtime) -> bool:
    """Return whether this appliance answers at an address of `listen`."""
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # no bind
    urls = (f"http://{format_host(loopback.get(host, host), port)}" for host, port in rt.settings.listen_addresses)
    return any(find_answering(rt, url)[0] is Answering.THIS for url in urls)


def check_web(rt: Runtime) -> Finding:
    base_url, listen = rt.settings.base_url, rt.settings.listen
    who, how = find_answering(rt, base_url)
    if who is Answering.THIS:
        return ok("web", f"{base_url} leads to this appliance.")
    if who is Answering.OTHER:
        message = f"{base_url}/healthz does not lead to this appliance: {how}."
        remedy = f"Forward requests for base_url to {listen}, or correct base_url."
        return problem("web", message, remedy if answers_here(rt) else f"{remedy} {commands.start()}.")
    if not answers_here(rt):
        return problem("web", f"The web server is not running: nothing answers at {listen}.", f"{commands.start()}.")
    if is_loopback(base_url):
        message = f"Nothing answers at {base_url}, but the web server is running at {listen}."
        return problem("web", message, f"Set base_url and `listen` to the same port, or start a proxy to {listen}.")
    # Many routers do not connect a machine to its own public IP address.
    message = f"The web server is running, but this machine cannot reach base_url: {how}"
    return note("web", message, f"Open {base_url}/healthz on another machine. The page must show {rt.instance_id}.")


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- networks --------------------------------------------------------------------------------------------------------

MAX_SKEW = timedelta(minutes=2)
"""The clock difference that signed URLs and read-backs allow for."""
SET_CLOCK = "Set the clock, and keep it set with NTP (timedatectl set-ntp true)."


def check_networks_offline(settings: Settings) -> Iterator[Finding]:
    """Yield the findings that need only the configuration, for an owner who registers an app."""
    for name, provider in registry.build(settings.providers).items():
        if not getattr(settings.providers, name).missing_keys():
            yield from _check_app(settings, provider, ())


def check_networks(rt: Runtime, connected: Sequence[ProfileRow]) -> Iterator[Finding]:
    """Yield the findings. `connected` lists the profiles that are not disconnected. Calls the networks."""
    for error in accounts.find_not_enabled(rt):
        yield problem_of("network", error)
    for name, provider in rt.providers.items():
        section = getattr(rt.settings.providers, name)
        profiles = [row for row in connected if row.provider == name]
        if not section.missing_keys() and (section.is_set_up or profiles):
            yield from _check_app(rt.settings, provider, profiles)
        elif profiles and section.half_given() is None:
            keys = " and ".join(section.missing_keys())
            message = f"{provider.label} has profiles, but its app has no {keys}: tokens cannot be renewed."
            yield problem("credentials", message, f"Copy {keys} from the app's page into [providers.{name}].")
        if profiles or section.is_set_up:
            yield from _check_connection(rt, provider.label, section, used=bool(profiles))


def _check_app(settings: Settings, provider: Provider, profiles: Sequence[ProfileRow]) -> Iterator[Finding]:
    rule = redirects.check(settings, provider)
    if rule is not None and rule.remedy is None:
        yield ok("redirect address", rule.sentence)
    elif rule is not None and rule.remedy is not None:
        # A working account needs the redirect address only at its next consent, perhaps in a year.
        works = bool(profiles) and all(row.status == ProfileStatus.ACTIVE for row in profiles)
        yield (note if works else problem)("redirect address", rule.sentence, rule.remedy)
    if limits := provider.app_limits():
        yield note("app", " ".join((*limits.sentences, limits.why)), limits.remedy)


def _check_connection(rt: Runtime, label: str, section: NetworkSection, *, used: bool) -> Iterator[Finding]:
    """Check that the network responds, with any response, and that its clock agrees with ours."""
    try:
        response = rt.http.call("GET", section.address, deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        remedy = f"Check this machine's network and DNS, and {section.ADDRESS_KEY}."
        if is_loopback(section.address):
            sandbox = commands.line("sandbox")
            remedy = f"If {section.ADDRESS_KEY} is the URL of the sandbox, start the sandbox: `{sandbox}`"
        yield (problem if used else note)("network", f"{label}: {error.message}", remedy)
        return
    except ProviderError as error:
        yield note("network", f"{label} did not return a usable response: {error.message}", "Try again later.")
        return
    yield ok("network", f"{label} responds.")
    try:
        theirs = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return
    if theirs.tzinfo is not None and abs(theirs - rt.now()) > MAX_SKEW:
        message = f"The clock of {label} shows {stamp(theirs)}, but this machine's clock shows {stamp(rt.now())}."
        yield problem("clock", message, SET_CLOCK)
