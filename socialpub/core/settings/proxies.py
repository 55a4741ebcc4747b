"""Which proxies are believed when they name a caller's address.

A proxy on another machine or in another container is believed only when it is listed; whoever else sends the same
header is taken for who connected.
"""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from socialpub.core.settings.values import Section, read_list

UNIX = "unix"
"""Stands for whoever connects through a socket in the file system."""


def _check_proxy(text: str) -> str:
    text = text.strip()
    if text == UNIX:
        return text
    try:
        network = ip_network("" if "%" in text else text, strict=False)  # addresses are compared without their zone
    except ValueError:
        raise ValueError(f"{text[:60]!r} is neither an address nor a network") from None
    if "/" in text and str(network.network_address) != str(ip_network(text.partition("/")[0]).network_address):
        raise ValueError(f"{text!r} is an address inside of a network: write {network}")
    return str(network) if "/" in text else str(network.network_address)


class ProxiesSection(Section):
    trusted: Annotated[tuple[Annotated[str, AfterValidator(_check_proxy)], ...], BeforeValidator(read_list)] = Field(
        default=("127.0.0.1", "::1"),
        description='a list of addresses and networks, such as ["127.0.0.1", "172.16.0.0/12"], and "unix" for a socket '
        "in the file system; [] for none",
    )
