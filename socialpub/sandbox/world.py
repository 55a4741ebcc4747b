"""The memory of all networks.

One event loop changes it, without locks. Tests may read it from other threads.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request

from socialpub.sandbox.bluesky.network import BlueskySandbox
from socialpub.sandbox.memory import IdSequence, Journal, MachineClock, SandboxClock, SandboxContext
from socialpub.sandbox.messages import SandboxRequest
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.network import XSandbox


class ClosingSignal:
    """A signal that ends hanging calls, from any thread."""

    def __init__(self) -> None:
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @contextlib.contextmanager
    def awaited(self) -> Iterator[asyncio.Event]:
        """Yield an event of the running loop that is set when the world closes."""
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


SECRET_PARAMETERS = frozenset({"upload_token"})


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request without its credentials, for tests."""

    network: str
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    json: Any = None
    """The JSON body, or None."""
    fields: tuple[tuple[str, str | None, int], ...] = ()
    """The parts of a multipart body: name, declared type, bytes."""


def recorded(network: str, request: SandboxRequest) -> RecordedRequest:
    data, parts = None, []
    with contextlib.suppress(ValueError):
        if request.content_type == "application/json":
            data = json.loads(request.body)
        elif request.content_type == "multipart/form-data":
            parts = request.parts()
    fields = tuple((part.name, part.content_type, part.body.size) for part in parts)
    query = {name: value for name, value in request.query().items() if name not in SECRET_PARAMETERS}
    return RecordedRequest(network, request.method, request.path, query, request.content_type, data, fields)


KEPT_REQUESTS = 10_000


class World:
    def __init__(self, clock: SandboxClock | None = None, *, journal: Path | None = None) -> None:
        """Create a world. `journal` keeps accounts, tokens and posts across restarts."""
        self.clock = clock or MachineClock()
        self.listens_on = ""
        """The host of the sandbox's URL."""
        self.shows_bluesky = False
        """Whether pages and overviews name Bluesky."""
        self.instant_faults = False
        """Raise `Hang` and `ConnectionCut` through the ASGI application instead of waiting and cutting."""
        self.record = False
        """Whether `requests` keeps every request."""
        self.requests: deque[RecordedRequest] = deque(maxlen=KEPT_REQUESTS)
        self.closing = ClosingSignal()
        self._context = SandboxContext(self.clock, IdSequence(self.clock), Journal(journal))
        self._begin()
        for entry in self._context.journal.read():
            network = self.networks.get(str(entry.pop("network", "")))
            if network is not None:
                network.replay(str(entry.pop("kind", "")), entry)

    def _begin(self) -> None:
        context = self._context
        self.x, self.tiktok, self.pinterest = XSandbox(context), TikTokSandbox(context), PinterestSandbox(context)
        self.bluesky = BlueskySandbox(context)
        self.networks: dict[str, SandboxNetwork[Any]] = {
            one.name: one for one in (self.x, self.tiktok, self.pinterest, self.bluesky)
        }

    @property
    def shown_networks(self) -> list[SandboxNetwork[Any]]:
        """The networks that pages and overviews name. The others work at their addresses."""
        return [one for one in self.networks.values() if one is not self.bluesky or self.shows_bluesky]

    def serve(self) -> None:
        """Record that the world listens on a port."""
        self._context.serving = True

    def reset(self) -> None:
        """Delete everything, including the journal, and end hanging calls."""
        self.close()
        self._context.journal.clear()
        self.requests.clear()
        self._begin()

    def record_request(self, network: str, request: SandboxRequest) -> None:
        if self.record:
            self.requests.append(recorded(network, request))

    def close(self) -> None:
        """End every hanging call, from any thread. The world stays usable."""
        self.closing.send()
        self._context.journal.close()


def current_world(request: Request) -> World:
    world: World = request.app.state.world
    return world
