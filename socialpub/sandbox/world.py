"""Lets go of calls that hang, from whatever thread the stop is asked for."""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from socialpub.sandbox.memory import IdSequence, Journal, MachineClock, NetworkClock, SandboxClock, SandboxContext
from socialpub.sandbox.messages import PartSummary, SandboxRequest
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.network import XSandbox


class ClosingSignal:
    def __init__(self) -> None:
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @contextlib.contextmanager
    def awaited(self) -> Iterator[asyncio.Event]:
        """An event of the running loop, set when the world closes."""
        pair = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(pair)
        try:
            yield pair[1]
        finally:
            self._waiting.discard(pair)

    def send(self) -> None:
        for loop, event in tuple(self._waiting):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)


# MERGED from sandbox/recording.py: Requests kept for a test that wants to know what was sent, without its credenti

SECRET_PARAMETERS = frozenset({"upload_token"})


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    network: str
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    json: Any = None
    """The JSON body, parsed; None when there is none."""
    fields: tuple[PartSummary, ...] = ()
    """The parts of a multipart body: name, declared type, bytes."""


def recorded(network: str, request: SandboxRequest) -> RecordedRequest:
    data = None
    fields: tuple[PartSummary, ...] = ()
    if request.content_type == "application/json":
        with contextlib.suppress(ValueError):
            data = json.loads(request.body)
    elif request.sink is not None:
        fields = request.sink.parts()
    elif request.content_type == "multipart/form-data":
        with contextlib.suppress(Exception):
            fields = tuple((part.header.name, part.header.content_type, len(part.data)) for part in request.parts())
    query = {name: value for name, value in request.query().items() if name not in SECRET_PARAMETERS}
    return RecordedRequest(network, request.method, request.path, query, request.content_type, data, fields)


# MERGED from sandbox/world.py: The memory of all three networks.

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
