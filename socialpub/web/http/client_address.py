"""The IP address of a client behind trusted proxies, and proxies that are not trusted."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import HTTPConnection

from socialpub.core import logging
from socialpub.core.settings.schema import UNIX
from socialpub.db import appliance_state
from socialpub.ops.doctor import reachability
from socialpub.runtime import Runtime

_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]{1,5})?|([^:]*):[0-9]{1,5}")
_HOME_BITS = 64
"""Internet providers assign at least a /64 to each household, so one client can use 2^64 IPv6 addresses."""
_MAX_ENTRIES = 20
"""The maximum number of proxies in a real chain. Earlier entries are not read, because a client can invent them."""


class TrustedProxies:
    """The proxies whose X-Forwarded-For is used (`proxies.trusted`).

    `Forwarded` (RFC 7239) is not used: a proxy that appends to one header passes the client's own value in the other.
    """

    def __init__(self, trusted: Iterable[str]) -> None:
        listed = set(trusted)
        self._unix = UNIX in listed
        self._networks = [_unmapped(ip_network(text)) for text in listed - {UNIX}]

    def contains(self, peer: str) -> bool:
        """Return whether a peer is trusted. The peer of a Unix socket is empty."""
        return self._unix if not peer else self._is_listed(_read(peer))

    def find_caller(self, peer: str, forwarded: Sequence[bytes] = ()) -> str:
        """Return the IP address of the client. `forwarded` contains the values of all X-Forwarded-For headers.

        Each proxy appends the IP address of its peer. The last IP address that is not a trusted proxy is the client. An
        entry that is not an IP address ends the search.
        """
        if not forwarded or not self.contains(peer):
            return peer
        caller = peer
        for entry in reversed(b",".join(forwarded[-_MAX_ENTRIES:]).rsplit(b",", _MAX_ENTRIES)[-_MAX_ENTRIES:]):
            # Proxies write an IP address alone, with a port, or in brackets.
            text = entry.strip()[:64].decode("latin-1")
            match = _WITH_PORT.fullmatch(text)
            address = _read((match[1] or match[2] or "") if match else text)
            if address is None:
                break
            caller = str(address)
            if not self._is_listed(address):
                break
        return caller

    def _is_listed(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def peer_of(request: HTTPConnection) -> str:
    """Return the IP address of the connection's other end. Empty for a Unix socket."""
    return request.client.host if request.client else ""


def of_request(request: HTTPConnection) -> str:
    """Return the IP address of the client, as trusted proxies report it."""
    forwarded = [value for name, value in request.headers.raw if name == b"x-forwarded-for"]
    trusted: TrustedProxies = request.app.state.trusted_proxies
    return trusted.find_caller(peer_of(request), forwarded)


def format_peer(peer: str) -> str:
    """Return a peer in the form of `proxies.trusted`: mapped IPv4 as IPv4, and a Unix socket as "unix"."""
    return UNIX if not peer else str(_read(peer) or peer)


def client_network(address: str) -> str:
    """Return the network that shares one limit: the IPv4 address itself, or the /64 of an IPv6 address."""
    parsed = _read(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((int(parsed), _HOME_BITS), strict=False))
    return address if parsed is None else str(parsed)


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])  # without the zone of a link-local address
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _unmapped(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """Return a network of mapped IPv4 addresses as an IPv4 network."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < 96:
        return network
    return IPv4Network((int(mapped), network.prefixlen - 96))


# --- untrusted proxies -----------------------------------------------------------------------------------------------

NOTICE_SECONDS = 3600.0
"""The interval at which the same peer is logged and recorded again."""
MAX_PEERS = 32
"""A limit, because clients with many IP addresses must not fill the log or the memory."""
MAX_LOGGED_CHARACTERS = 100

log = logging.get_logger(__name__)


class UntrustedForwarders:
    def __init__(self, rt: Runtime, trusted: TrustedProxies) -> None:
        self._rt = rt
        self._trusted = trusted
        self._trusted_peer: str | None = None
        self._seen: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """By peer: the time of the last log line (monotonic and as a stamp). The oldest entry comes first."""
        # After a start, the database contains the records of the previous process.
        self._changed = appliance_state.get(rt.db, appliance_state.UNTRUSTED_PROXIES) is not None

    async def note(self, peer: str, value: str) -> None:
        """Log and record that this peer sent the header, if the peer is not trusted."""
        if peer == self._trusted_peer:  # the usual case, without the cost of parsing
            return
        if self._trusted.contains(peer):
            self._trusted_peer = peer
            return
        peer, now = format_peer(peer), self._rt.clock.monotonic()
        if peer in self._seen and now - self._seen[peer][0] < NOTICE_SECONDS:
            return
        if not self._make_room(peer, now):
            return
        self._seen[peer] = now, self._rt.stamp()
        self._seen.move_to_end(peer)
        self._changed = True
        log.warning(
            "ignored X-Forwarded-For: the peer is not in [proxies] trusted",
            peer=peer,
            setting="proxies.trusted",
            value=value[:MAX_LOGGED_CHARACTERS],
            remedy=reachability.trust_remedy(peer, self._rt.settings.proxies.trusted),
        )
        await self.flush()

    async def flush(self) -> None:
        """Store changed records. Raises Unavailable; the next call tries again."""
        if self._changed:
            seen_at = {peer: at for peer, (_, at) in self._seen.items()}
            await self._rt.write_soon(reachability.store_untrusted_proxies, seen_at)
            self._changed = False

    def _make_room(self, peer: str, now: float) -> bool:
        """Return whether there is space for this peer. A public peer does not replace another peer within an hour."""
        if peer in self._seen or len(self._seen) < MAX_PEERS:
            return True
        replaced, (logged_at, _) = next(iter(self._seen.items()))
        if now - logged_at < NOTICE_SECONDS:
            public = list(filter(reachability.is_public, self._seen))
            if reachability.is_public(peer) or not public:
                return False
            replaced = public[0]
        del self._seen[replaced]
        return True
