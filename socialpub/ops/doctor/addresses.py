"""Checks of the socket, the proxies, `base_url` and the networks.

The web process records peers that send X-Forwarded-For and are not in `[proxies] trusted`. All callers behind such a
proxy share one IP address and its limits. Anyone can send the header, so a public peer is only a note.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from socialpub.accounts import consents
from socialpub.accounts import profiles as accounts
from socialpub.core import commands
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import OperatorError
from socialpub.core.sd_notify import format_host
from socialpub.core.settings.loader import Settings, find_overlap
from socialpub.core.settings.networks import NetworkSection
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.ops.health import Finding, note, ok, problem
from socialpub.providers import registry
from socialpub.providers.base import Provider
from socialpub.providers.responses import HttpResponse, NotSent, ProviderError, json_object, text_at
from socialpub.runtime import Runtime


def resolve_listen(settings: Settings) -> list[str]:
    """Return the addresses of `listen` in systemd's notation. Raises OperatorError."""
    try:
        return [format_host(*info[4][:2]) for info in find_sockets(settings)]
    except OSError as error:
        raise OperatorError(
            f"The address of `listen` = {settings.listen!r} cannot be resolved: {error.strerror}.",
            "Set `listen` to an IP address and port of this machine, such as 127.0.0.1:8000.",
        ) from error


def find_sockets(settings: Settings) -> list[tuple[Any, ...]]:
    """Return what `socket.getaddrinfo` returns for `listen`. Raises OSError, and OperatorError if two are the same."""
    found = [
        info
        for host, port in settings.listen_addresses
        for info in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))
    ]
    if (overlap := find_overlap(format_host(*info[4][:2]) for info in found)) is not None:
        raise OperatorError(f"`listen` = {settings.listen!r} cannot be used: {overlap}.", "Remove one of the two.")
    return found


def socket_difference(settings: Settings, held: str) -> str | None:
    """Return a sentence if the socket is not at `listen`. `held` is systemd's text: `127.0.0.1:8000 (Stream)`."""
    addresses = [word for word in held.split() if ":" in word]
    try:
        if not addresses or set(addresses) == set(resolve_listen(settings)):
            return None
    except OperatorError:
        return None  # the network of this machine may be down
    where = " and ".join(addresses)
    return f"systemd holds the web server's socket at {where}, but `listen` is {settings.listen}."


SHOWN_FOR = timedelta(days=1)
"""The time for which `doctor` reports a peer after the peer's last recorded request."""


@dataclass(frozen=True, slots=True)
class UntrustedProxy:
    peer: str
    """An IP address, or "unix" for a socket in the file system."""
    seen_at: str
    """The stamp of a request. The last request may be an hour later."""

    @property
    def is_public(self) -> bool:
        """Return whether the peer has a public IP address, which is rarely the owner's proxy."""
        try:
            return ip_address(self.peer).is_global
        except ValueError:
            return False


def trust_remedy(peer: str, trusted: Sequence[str]) -> str:
    wanted = ", ".join(f'"{one}"' for one in (*trusted, peer))
    return f"If {peer} is your reverse proxy, set [proxies] trusted = [{wanted}]. {commands.restart()}."


def store_untrusted_proxies(rt: Runtime, tx: Database, proxies: Sequence[UntrustedProxy]) -> None:
    """Replace the peers that a web process recorded earlier."""
    if proxies:
        appliance_state.put(tx, appliance_state.UNTRUSTED_PROXIES, json.dumps([asdict(one) for one in proxies]))
    else:
        appliance_state.remove(tx, appliance_state.UNTRUSTED_PROXIES)


def read_untrusted_proxies(reader: Database) -> list[UntrustedProxy]:
    recorded = json.loads(appliance_state.get(reader, appliance_state.UNTRUSTED_PROXIES) or "[]")
    return [UntrustedProxy(**one) for one in recorded]


def check_untrusted_proxies(rt: Runtime) -> Iterator[Finding]:
    for proxy in read_untrusted_proxies(rt.reader):
        if rt.now() - parse(proxy.seen_at) > SHOWN_FOR:
            continue
        how = trust_remedy(proxy.peer, rt.settings.proxies.trusted)
        message = f"X-Forwarded-For came from {proxy.peer} at {proxy.seen_at}. This peer is not in [proxies] trusted."
        if proxy.is_public:
            yield note("proxies", f"{message} The header was not used.", f"{how} Otherwise, no action is needed.")
        else:
            shared = "All callers behind this peer count as one IP address."
            yield problem("proxies", f"{message} {shared}", f"{how} Otherwise, find the program that sends the header.")


CALL_SECONDS = 10.0


class Answering(StrEnum):
    THIS = "this appliance"
    OTHER = "something else"
    NOTHING = "nothing"


def find_answering(rt: Runtime, base: str) -> tuple[Answering, str]:
    """Return which program answers at `{base}/healthz`, and the reason. Blocks."""
    try:
        answer = rt.http.call("GET", f"{base}/healthz", deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        return Answering.NOTHING, error.message
    except ProviderError as error:
        return Answering.OTHER, error.message
    found = text_at(json_object(answer), "instance")
    if found == rt.instance_id:
        return Answering.THIS, ""
    how = "another socialpub answers" if found else f"another program answers with HTTP {answer.status}"
    return Answering.OTHER, how


def answers_here(rt: Runtime) -> bool:
    """Return whether this appliance answers at an address of `listen`."""
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # no bind
    urls = (f"http://{format_host(loopback.get(host, host), port)}" for host, port in rt.settings.listen_addresses)
    return any(find_answering(rt, url)[0] is Answering.THIS for url in urls)


def move_socket() -> str:
    """Return the instruction that applies a changed `listen`."""
    if not commands.is_service():
        return commands.restart()
    unit = f"/usr/local/lib/systemd/system/{commands.UNITS[0]}"
    write = f"{commands.line('config', '--unit', 'socket')} | sudo tee {unit}"
    return f"Run `{write} && sudo systemctl daemon-reload`. {commands.restart(*commands.UNITS)}"


def check_web(rt: Runtime) -> Finding:
    settings = rt.settings
    who, how = find_answering(rt, settings.base_url)
    if who is Answering.THIS:
        return ok("web", f"{settings.base_url} leads to this appliance.")
    runs_here = answers_here(rt)
    if who is Answering.OTHER:
        message = f"{settings.base_url}/healthz does not lead to this appliance: {how}."
        remedy = f"Forward requests for base_url to {settings.listen}, or correct base_url."
        return problem("web", message, remedy if runs_here else f"{remedy} {commands.start()}.")
    if not runs_here and (elsewhere := _serves_elsewhere(rt)) is not None:
        message = f"The web server listens at {elsewhere}, but `listen` is {settings.listen}."
        return problem("web", message, f"{move_socket()}.")
    if not runs_here:
        message = f"The web server is not running: nothing answers at {settings.listen}."
        return problem("web", message, f"{commands.start()}.")
    if (differ := ports_differ(settings)) is not None:
        return differ
    if is_of_this_machine(settings.base_url):
        message = f"Nothing answers at {settings.base_url}, but the web server is running at {settings.listen}."
        return problem("web", message, "Set base_url and `listen` to the same host and port.")
    # Many routers do not connect a machine to its own public IP address.
    message = f"The web server is running, but this machine cannot reach base_url: {how}"
    check = f"Open {settings.base_url}/healthz on another machine. The page must show {rt.instance_id}."
    return note("web", message, check)


def _serves_elsewhere(rt: Runtime) -> str | None:
    """Return the host and port of the running web server if they differ from `listen`."""
    try:
        _, *addresses = (rt.settings.run_dir / "web.lock").read_text().partition("\n")[0].split()
    except (OSError, ValueError):
        return None
    others = (address for address in addresses if address not in rt.settings.listen.split(", "))
    return next((address for address in others if find_answering(rt, f"http://{address}")[0] is Answering.THIS), None)


def ports_differ(settings: Settings) -> Finding | None:
    """Return a finding if `base_url` and `listen` have different ports of this machine, which requires a proxy."""
    parts = urlsplit(settings.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port in settings.listen_ports or not is_of_this_machine(settings.base_url):
        return None
    return problem(
        "base_url",
        f"base_url has port {port} of this machine, but `listen` is {settings.listen}. Without a proxy, "
        f"nothing answers at {settings.base_url}.",
        f"Set both to the same port, or start the proxy that forwards to {settings.listen}.",
    )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_of_this_machine(url: str) -> bool:
    """Return whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    if is_loopback(host):
        return True
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # works only for an IP address of this machine
    except (ValueError, OSError):
        return False
    return True


MAX_SKEW = timedelta(minutes=2)
"""The clock difference that signed URLs and read-backs allow for."""
SET_CLOCK = "Set the clock, and keep it set with NTP (timedatectl set-ntp true)."


def check_networks_offline(settings: Settings) -> list[Finding]:
    """Return the findings that need only the configuration, for an owner who registers an app."""
    sections = dict(settings.providers)
    set_up = (one for name, one in registry.build(settings.providers).items() if not sections[name].missing_keys())
    return [finding for one in set_up for finding in _check_app(settings, one, ())]


def check_networks(rt: Runtime, connected: Sequence[ProfileRow]) -> Iterator[Finding]:
    """Yield the findings. `connected` lists the profiles that are not disconnected. Calls the networks."""
    for error in accounts.find_not_enabled(rt):
        yield problem("network", error.message, error.hint or "")
    for name, provider in rt.providers.items():
        section = getattr(rt.settings.providers, name)
        missing = section.missing_keys()
        profiles = [row for row in connected if row.provider == name]
        if missing and profiles and section.half_given() is None:
            keys, are = " and ".join(missing), "is" if len(missing) == 1 else "are"
            message = f"{provider.label} has profiles, but {keys} of its app {are} empty: tokens cannot be renewed."
            yield problem("credentials", message, f"Copy {keys} from the app's page into [providers.{name}].")
        elif missing or not (section.is_set_up or profiles):
            continue
        else:
            yield from _check_app(rt.settings, provider, profiles)
        yield from _check_connection(rt, provider.label, section, bool(profiles))


def _check_app(settings: Settings, provider: Provider, profiles: Sequence[ProfileRow]) -> Iterator[Finding]:
    rule = consents.check_redirect_address(settings, provider)
    if rule is not None and rule.remedy is None:
        yield ok("redirect address", rule.sentence)
    elif rule is not None and rule.remedy is not None:
        # A working account needs the redirect address only at its next consent, perhaps in a year.
        works = bool(profiles) and all(row.status == ProfileStatus.ACTIVE for row in profiles)
        yield (note if works else problem)("redirect address", rule.sentence, rule.remedy)
    if limits := provider.app_limits():
        yield note("app", " ".join((*limits.sentences, limits.why)), limits.remedy)


def _check_connection(rt: Runtime, label: str, section: NetworkSection, used: bool) -> Iterator[Finding]:
    """Check that the network can be reached. Any response is sufficient."""
    try:
        answer = rt.http.call("GET", section.address, deadline_seconds=CALL_SECONDS)
    except NotSent as error:
        remedy = f"Check this machine's network and DNS, and {section.ADDRESS_KEY}."
        if is_of_this_machine(section.address):
            remedy = (
                f"If {section.ADDRESS_KEY} is the URL of the sandbox, start the sandbox: `{commands.line('sandbox')}`"
            )
        yield (problem if used else note)("network", f"{label}: {error.message}", remedy)
    except ProviderError as error:
        yield note("network", f"{label} did not return a usable response: {error.message}", "Try again later.")
    else:
        yield ok("network", f"{label} responds.")
        yield from _compare_clocks(rt, label, answer)


def _compare_clocks(rt: Runtime, label: str, answer: HttpResponse) -> Iterator[Finding]:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return
    if theirs.tzinfo is not None and abs(theirs - rt.now()) > MAX_SKEW:
        message = f"The clock of {label} shows {stamp(theirs)}, but this machine's clock shows {stamp(rt.now())}."
        yield problem("clock", message, SET_CLOCK)
