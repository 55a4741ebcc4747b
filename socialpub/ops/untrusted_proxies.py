"""Peers that send X-Forwarded-For and are not trusted: the web process records them, and the doctor reports them.

A proxy that is missing in `[proxies] trusted` makes all of its callers one address, and they share the limits of wrong
keys and passwords. Anybody who reaches the port can send the header, so a public peer is a note and no problem.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from ipaddress import ip_address

from socialpub.core import commands
from socialpub.core.clock import parse
from socialpub.db import appliance_state
from socialpub.db.transaction import Reader, Tx
from socialpub.ops.finding import Finding, note, problem
from socialpub.runtime import Runtime

SHOWN = timedelta(days=1)
"""How long the doctor reports a peer after its last recorded request."""


@dataclass(frozen=True, slots=True)
class UntrustedProxy:
    peer: str
    """An address, or "unix" for a socket in the file system."""
    seen_at: str
    """A stamp. It may be an hour older than the last request."""

    @property
    def is_public(self) -> bool:
        """Whether the peer has an address of the internet: a stranger, more likely than a proxy of the owner's."""
        try:
            return ip_address(self.peer).is_global
        except ValueError:
            return False


def remedy(peer: str, trusted: Sequence[str]) -> str:
    """How the owner makes this peer trusted."""
    wanted = ", ".join(f'"{one}"' for one in (*trusted, peer))
    return f"If {peer} is your reverse proxy, set [proxies] trusted = [{wanted}]. {commands.restart()}."


def put(rt: Runtime, tx: Tx, proxies: Sequence[UntrustedProxy]) -> None:
    """Replace what the former web process, or this one, recorded."""
    if proxies:
        appliance_state.put(tx, appliance_state.UNTRUSTED_PROXIES, json.dumps([asdict(one) for one in proxies]))
    else:
        appliance_state.remove(tx, appliance_state.UNTRUSTED_PROXIES)


def read(reader: Reader) -> list[UntrustedProxy]:
    """Return what the web process recorded, the oldest first."""
    recorded = json.loads(appliance_state.get(reader, appliance_state.UNTRUSTED_PROXIES) or "[]")
    return [UntrustedProxy(**one) for one in recorded]


def check(rt: Runtime) -> Iterator[Finding]:
    """Report every peer that was seen within a day."""
    for proxy in read(rt.reader):
        if rt.now() - parse(proxy.seen_at) > SHOWN:
            continue
        how = remedy(proxy.peer, rt.settings.proxies.trusted)
        message = f"X-Forwarded-For came from {proxy.peer} at {proxy.seen_at}. This peer is not in [proxies] trusted."
        if proxy.is_public:
            yield note("proxies", f"{message} The header was not used.", f"{how} Otherwise, no action is needed.")
        else:
            shared = "All callers behind this peer count as one address."
            yield problem("proxies", f"{message} {shared}", f"{how} Otherwise, find out what sends this header.")
