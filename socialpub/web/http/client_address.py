"""Where a request comes from, what counts as one place, and proxies that are not trusted."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from socialpub.core import logging
from socialpub.core.settings.schema import UNIX
from socialpub.db import appliance_state
from socialpub.ops.doctor import addresses
from socialpub.ops.doctor.addresses import UntrustedProxy
from socialpub.runtime import Runtime

_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]{1,5})?|([^:]*):[0-9]{1,5}")
_HOME_BITS = 64
"""What a provider gives to one household, at least: a client with one IPv6 address has 2^64 of them."""
_MAX_ENTRIES = 20
"""No real chain has more proxies; earlier entries, which a caller may invent, are not read."""


class TrustedProxies:
    """Who is believed when they say in X-Forwarded-For whose request they pass on (`proxies.trusted`).

    `Forwarded` (RFC 7239) is not read: a proxy that appends to the one passes a caller's own words on in the other.
    """

    def __init__(self, trusted: Iterable[str]) -> None:
        listed = set(trusted)
        self._unix = UNIX in listed
        self._networks = [_unmapped(ip_network(text)) for text in listed - {UNIX}]

    def holds(self, peer: str) -> bool:
        """Whether this address is one of them; it is empty for a socket in the file system."""
        return self._unix if not peer else self._is_listed(_read(peer))

    def find_caller(self, peer: str, forwarded: Sequence[bytes] = ()) -> str:
        """The address of the caller. `peer` is who connected, `forwarded` the values of X-Forwarded-For, one for each
        time that the header was sent.

        Each proxy appends the address of its peer. So they are read from the end, as long as a proxy that is listed
        wrote them: the first address that is none of ours is the caller's. What is no address ends the way there.
        """
        if not forwarded or not self.holds(peer):
            return peer
        caller = peer
        for entry in reversed(b",".join(forwarded[-_MAX_ENTRIES:]).rsplit(b",", _MAX_ENTRIES)[-_MAX_ENTRIES:]):
            address = _read_entry(entry)
            if address is None:
                break
            caller = str(address)
            if not self._is_listed(address):
                break
        return caller

    def _is_listed(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def plain(peer: str) -> str:
    """Return a peer as `proxies.trusted` names it: IPv4 in IPv6 as IPv4, and a socket in the file system as "unix"."""
    return UNIX if not peer else str(_read(peer) or peer)


def network_of(address: str) -> str:
    """What this address counts as: an IPv4 address is one, and so is a whole /64 of IPv6."""
    found = _read(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _HOME_BITS), strict=False))
    return address if found is None else str(found)


def _read_entry(entry: bytes) -> IPv4Address | IPv6Address | None:
    """An address as proxies write it: alone, with a port, in brackets."""
    text = entry.strip()[:64].decode("latin-1")
    match = _WITH_PORT.fullmatch(text)
    return _read((match[1] or match[2] or "") if match else text)


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])  # without the zone of a link-local one
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _unmapped(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """As addresses are compared with it: those of IPv4 that are written as IPv6 count as what they are."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < 96:
        return network
    return IPv4Network((int(mapped), network.prefixlen - 96))


# --- untrusted proxies -----------------------------------------------------------------------------------------------

NOTICE_SECONDS = 3600.0
"""How often one peer is logged and recorded."""
MAX_PEERS = 32
"""This many peers are remembered. Strangers have many addresses, and they must fill neither log nor memory."""
MAX_CHARACTERS = 100
"""Of the header's value in a log line."""

log = logging.get_logger("socialpub.requests")


class UntrustedForwarders:
    def __init__(self, rt: Runtime, trusted: TrustedProxies) -> None:
        self._rt = rt
        self._trusted = trusted
        self._trusted_peer: str | None = None
        self._seen: OrderedDict[str, tuple[float, UntrustedProxy]] = OrderedDict()
        """By peer: when it was logged last (monotonic), and its record. The oldest comes first."""
        self._changed = appliance_state.get(rt.reader, appliance_state.UNTRUSTED_PROXIES) is not None
        """Whether the rows hold something else. After a start they hold what the former process recorded."""

    async def note(self, peer: str, value: bytes) -> None:
        """Log and record that this peer sent the header. `peer` is empty for a socket in the file system."""
        if peer == self._trusted_peer:
            return  # the usual case, which every request through a proxy pays for
        if self._trusted.holds(peer):
            self._trusted_peer = peer
            return
        name, now = plain(peer), self._rt.clock.monotonic()
        if name in self._seen and now - self._seen[name][0] < NOTICE_SECONDS:
            return
        proxy = UntrustedProxy(name, self._rt.stamp())
        if not self._make_room(proxy, now):
            return
        self._seen[proxy.peer] = now, proxy
        self._seen.move_to_end(proxy.peer)
        self._changed = True
        log.warning(
            "ignored X-Forwarded-For: the peer is not in [proxies] trusted",
            peer=proxy.peer,
            setting="proxies.trusted",
            value=value[:MAX_CHARACTERS].decode("latin-1"),
            remedy=addresses.trust_remedy(proxy.peer, self._rt.settings.proxies.trusted),
        )
        await self.flush()

    async def flush(self) -> None:
        """Write the record down, where it changed. Raises Unavailable; the next call tries again."""
        if self._changed:
            await self._rt.write_soon(addresses.store_untrusted_proxies, [proxy for _, proxy in self._seen.values()])
            self._changed = False

    def _make_room(self, proxy: UntrustedProxy, now: float) -> bool:
        """Whether this peer can be remembered. A public peer never displaces another one within its hour."""
        if proxy.peer in self._seen or len(self._seen) < MAX_PEERS:
            return True
        oldest, (logged_at, _) = next(iter(self._seen.items()))
        if now - logged_at >= NOTICE_SECONDS:
            displaced: str | None = oldest
        elif proxy.is_public:
            displaced = None
        else:
            displaced = next((peer for peer, (_, known) in self._seen.items() if known.is_public), None)
        if displaced is None:
            return False
        del self._seen[displaced]
        return True
