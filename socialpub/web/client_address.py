"""Where a request comes from, and what counts as one place."""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_LOOPBACK = ("127.0.0.1", "::1")
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]{1,5})?|([^:]*):[0-9]{1,5}")
_HOME_BITS = 64
"""What a provider gives to one household, at least: whoever has one IPv6 address has 2^64 of them."""


def find(peer: str, forwarded: bytes | None) -> str:
    """The address of the caller. A proxy on this machine is believed when it names one.

    `peer` is who connected, `forwarded` the value of X-Forwarded-For. What is no address there is not looked at.
    """
    if forwarded is None or peer not in _LOOPBACK:
        return peer
    # Each proxy appends the address of its peer: only the last entry was written by ours.
    last = forwarded.rpartition(b",")[2].strip()[:64].decode("latin-1")
    match = _WITH_PORT.fullmatch(last)
    address = _read((match[1] or match[2] or "") if match else last)
    return peer if address is None else str(address)


def place(address: str) -> str:
    """What this address counts as: an IPv4 address is one, and so is a whole /64 of IPv6."""
    found = _read(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _HOME_BITS), strict=False))
    return address if found is None else str(found)


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])  # without the zone of a link-local one
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
