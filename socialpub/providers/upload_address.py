"""Where the bytes of a video may go: the network names the address at run time, the owner lists the hosts.

The address is a credential: no message shows more of it than host and port. One that is not allowed is no fault of the
post, so it holds every upload to that network until the owner has decided.
"""

import re
from urllib.parse import urlsplit

from socialpub.core.settings.networks import NetworkSection
from socialpub.providers.base import Held

ADDRESS = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:[/?][!-~]*)?")
"""Stricter than URLs are: no user, no backslash, nothing that two readers could read in two ways."""

PORTS = {"https": 443, "http": 80}


def complaint(address: str, section: NetworkSection, name: str, label: str) -> str | None:
    """Return why no bytes are sent to this address, None when they may be. `name` and `label` are the network's.

    Plain http, and another port than the usual one, are for a network that plays the real one: only where `api_url` has
    them too.
    """
    match = ADDRESS.fullmatch(address)
    if match is None:
        return f"{label} named an upload address that is no plain https address. Nothing was sent there."
    scheme, host, port = match[1], match[2], int(match[3] or PORTS[match[1]])
    own = urlsplit(section.api_url)
    if scheme != "https" and not scheme == own.scheme == "http":
        return f"{label} named an upload address at {host} without https. Nothing was sent there."
    if not section.allows_upload_host(host):
        return (
            f"{label} named the upload host {host}, which upload_hosts of [providers.{name}] does not list. Nothing "
            f"was sent there. If the host is {label}'s, add it to upload_hosts."
        )
    allowed = _ports(section, scheme)
    if port not in allowed:
        listed = " or ".join(map(str, allowed))
        return (
            f"{label} named port {port} of the upload host {host}. upload_hosts of [providers.{name}] allows this "
            f"host, but only with port {listed}. Nothing was sent there. If {label} now uses port {port}, report this "
            "as a fault of socialpub."
        )
    return None


def hold(why: str) -> Held:
    """Hold every upload to this network at this step, and nothing else."""
    return Held(why, "upload_host", this_step=True)


def _ports(section: NetworkSection, scheme: str) -> list[int]:
    allowed = [PORTS[scheme]]
    own = urlsplit(section.api_url)
    if section.api_url != section.OWN_API_URL and own.port not in (None, *allowed):
        allowed.append(own.port or 0)
    return allowed
