"""Notices X-Forwarded-For from a peer that is not trusted: a log line a peer and hour, and a record for the doctor."""

from collections import OrderedDict

from socialpub.core import logging
from socialpub.db import appliance_state
from socialpub.ops import untrusted_proxies
from socialpub.ops.untrusted_proxies import UntrustedProxy
from socialpub.runtime import Runtime
from socialpub.web.client_address import TrustedProxies, plain

EVERY_SECONDS = 3600.0
"""How often one peer is logged and recorded."""
MAX_PEERS = 32
"""This many peers are remembered. Strangers have many addresses, and they must fill neither log nor memory."""
MAX_CHARACTERS = 100
"""Of the header's value in a log line."""

log = logging.get_logger("socialpub.requests")


class UntrustedForwarders:
    """What one web process noticed."""

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
        if name in self._seen and now - self._seen[name][0] < EVERY_SECONDS:
            return
        proxy = UntrustedProxy(name, self._rt.stamp())
        if not self._make_room(proxy, now):
            return
        self._seen[proxy.peer] = now, proxy
        self._seen.move_to_end(proxy.peer)
        self._changed = True
        log.warning(
            "X-Forwarded-For was not used: its peer is not in [proxies] trusted",
            peer=proxy.peer,
            setting="proxies.trusted",
            value=value[:MAX_CHARACTERS].decode("latin-1"),
            remedy=untrusted_proxies.remedy(proxy.peer, self._rt.settings.proxies.trusted),
        )
        await self.flush()

    async def flush(self) -> None:
        """Write the record down, where it changed. Raises Unavailable; the next call tries again."""
        if self._changed:
            await self._rt.write_soon(untrusted_proxies.put, [proxy for _, proxy in self._seen.values()])
            self._changed = False

    def _make_room(self, proxy: UntrustedProxy, now: float) -> bool:
        """Whether this peer can be remembered. A public peer never displaces another one within its hour."""
        if proxy.peer in self._seen or len(self._seen) < MAX_PEERS:
            return True
        oldest, (logged_at, _) = next(iter(self._seen.items()))
        if now - logged_at >= EVERY_SECONDS:
            displaced: str | None = oldest
        elif proxy.is_public:
            displaced = None
        else:
            displaced = next((peer for peer, (_, known) in self._seen.items() if known.is_public), None)
        if displaced is None:
            return False
        del self._seen[displaced]
        return True
