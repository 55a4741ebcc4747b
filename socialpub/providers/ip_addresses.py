"""The IP addresses to which the appliance connects for a URL that others chose.

Every IP address of a host is checked, and the connection goes to a checked IP address. A host name that changes its IP
address after the check leads to no other machine.
"""

import socket
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

_REFUSED = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""Special networks (RFC 6890, RFC 7526, RFC 9637) that `ipaddress` of Python 3.11 calls global."""
_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""All other IPv6 addresses are special or reserved, such as the former site-local network fec0::/10."""
_LOCAL_DOMAINS = frozenset(
    "alt arpa corp example home internal intranet invalid lan local localdomain localhost onion private test".split()  # noqa: SIM905
)
"""Top-level domains that are no public sites: those of RFC 6761, 6762, 8375 and 9476, of ICANN, and usual ones."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""The last four bytes are an IPv4 address (RFC 6052)."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether this IP address is globally reachable. An embedded IPv4 address counts instead."""
    address = _embedded_ipv4(address) or address
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _REFUSED)


def is_public_name(host: str) -> bool:
    """Return whether a host in a URL may be a public site: not an IP address or a name of a local network."""
    labels = unicodedata.normalize("NFKC", host).lower().rstrip(".").split(".")
    is_address = ":" in host or labels[-1][:1].isdigit()
    return len(labels) > 1 and not is_address and labels[-1] not in _LOCAL_DOMAINS


def _embedded_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return address.ipv4_mapped or address.sixtofour or nat64


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The hosts that are allowed although they are private."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowedHosts":
        """Parse valid entries of `media.import_from`: host names, IP addresses and networks."""
        names, networks = set(), []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                names.add(entry)
        return cls(frozenset(names), tuple(networks))

    def allow(self, host: str, address: str) -> bool:
        """Return whether a connection to this IP address of the host is allowed. A name allows only its own URLs."""
        return self.lists(host, address) or is_public(ip_address(address))

    def lists(self, host: str, address: str) -> bool:
        """Return whether an entry names the host or this IP address."""
        parsed = ip_address(address)
        forms = {parsed, _embedded_ipv4(parsed) or parsed}
        is_named = host.lower().rstrip(".") in self.names
        return is_named or any(form in network for form in forms for network in self.networks)


def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host. An empty list: it was not found. Waits for DNS."""
    try:
        results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in results))


def pin(request: httpx2.Request, address: str) -> httpx2.Request:
    """Return the request for a connection to `address`. The certificate must still match the name in the URL."""
    url = request.url
    return httpx2.Request(
        request.method,
        url.copy_with(host=address),
        headers=request.headers,  # `Host` contains the name
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": url.raw_host.decode("ascii").rstrip(".")},
    )
