"""The memory of all networks.

One event loop changes it, without locks. Tests may read it from other threads.
"""

from pathlib import Path
from typing import Any, ClassVar

from socialpub.sandbox.bluesky.api import BlueskySandbox
from socialpub.sandbox.memory import IdSequence, Journal, MachineClock, SandboxClock, SandboxContext
from socialpub.sandbox.messages import SandboxRequest
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pinterest.api import PinterestSandbox
from socialpub.sandbox.tiktok.api import TikTokSandbox
from socialpub.sandbox.x.api import XSandbox


class World:
    kinds: ClassVar[tuple[Any, ...]] = (XSandbox, TikTokSandbox, PinterestSandbox, BlueskySandbox)
    """The class of each network."""
    actions: ClassVar[dict[str, Any]] = {}
    """Further actions of the control API."""

    x: XSandbox
    tiktok: TikTokSandbox
    pinterest: PinterestSandbox
    bluesky: BlueskySandbox

    def __init__(self, clock: SandboxClock | None = None, *, journal: Path | None = None) -> None:
        """Create a world. `journal` keeps accounts, tokens and posts across restarts."""
        self.clock = clock or MachineClock()
        self.shows_bluesky = False
        """Whether pages and overviews name Bluesky."""
        self.instant_faults = False
        """Raise `Hang` and `ConnectionCut` through the ASGI application instead of waiting and cutting."""
        self._context = SandboxContext(self.clock, IdSequence(self.clock), Journal(journal))
        self._begin()
        for entry in self._context.journal.read():
            network = self.networks.get(entry.get("network", ""))
            table = network.tables.get(entry.get("table", "")) if network is not None else None
            if table is not None:
                table.replay(entry)

    def _begin(self) -> None:
        self.networks: dict[str, SandboxNetwork] = {kind.name: kind(self._context) for kind in self.kinds}
        for name, network in self.networks.items():
            setattr(self, name, network)

    @property
    def shown_networks(self) -> list[SandboxNetwork]:
        """The networks that pages and overviews name. The others work at their addresses."""
        return [network for network in self.networks.values() if network is not self.bluesky or self.shows_bluesky]

    def reset(self) -> None:
        """Delete everything, including the journal."""
        self._context.journal.clear()
        self._begin()

    def received(self, network: str, request: SandboxRequest) -> None:
        """Called with every request, before its fault."""

    def close(self) -> None:
        """Close the journal. The world stays usable."""
        self._context.journal.close()
