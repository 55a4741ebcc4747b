"""The memory of all three networks.

One event loop changes it, without locks; tests may read it from other threads.
"""

from collections import deque
from pathlib import Path

from socialpub.sandbox.closing import ClosingSignal
from socialpub.sandbox.context import IdSequence, MachineClock, NetworkClock, SandboxClock, SandboxContext
from socialpub.sandbox.journal import Journal
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.recording import RecordedRequest, recorded
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.network import XSandbox

KEPT_REQUESTS = 10_000


class World:
    def __init__(self, clock: SandboxClock | None = None, *, journal: Path | None = None) -> None:
        """`clock` needs `now() -> aware datetime`. `journal` keeps accounts, tokens and posts over a restart."""
        self.clock = clock or MachineClock()
        self._serving = False
        self.listens_on = ""
        """The name in its own address, where that is not one of every machine's own."""
        self.instant_faults = False
        """Raise `Hang` and `ConnectionCut` through the ASGI application instead of really waiting or cutting."""
        self.record = False
        """Keep what is requested, in `requests`."""
        self.requests: deque[RecordedRequest] = deque(maxlen=KEPT_REQUESTS)
        self.closing = ClosingSignal()
        self._ids, self._journal = IdSequence(self.clock), Journal(journal)
        self._begin()
        for entry in self._journal.read():
            network = self.networks.get(str(entry.pop("network", "")))
            if network is not None:
                network.replay(str(entry.pop("kind", "")), entry)

    def _begin(self) -> None:
        self.x, self.tiktok, self.pinterest = (
            XSandbox(self._network_context()),
            TikTokSandbox(self._network_context()),
            PinterestSandbox(self._network_context()),
        )
        self.networks: dict[str, SandboxNetwork] = {"x": self.x, "tiktok": self.tiktok, "pinterest": self.pinterest}

    def _network_context(self) -> SandboxContext:
        return SandboxContext(NetworkClock(self.clock), self._ids, self._journal, self._serving)

    def serve(self) -> None:
        """From now on it listens on a port."""
        self._serving = True
        for network in self.networks.values():
            network.context.serving = True

    def reset(self) -> None:
        """Forget everything, the journal's lines too; calls that hang are let go."""
        self.close()
        self._journal.clear()
        self.requests.clear()
        self._begin()

    def record_request(self, network: str, request: SandboxRequest) -> None:
        if self.record:
            self.requests.append(recorded(network, request))

    def close(self) -> None:
        """Let go of every call that hangs, from whatever thread; the world stays usable."""
        self.closing.send()
        self._journal.close()
