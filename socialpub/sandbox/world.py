"""The memory of all three networks.

One event loop changes it, without locks; tests may read it from other threads.
"""

import asyncio
import contextlib
import json
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from socialpub.sandbox.call import Call
from socialpub.sandbox.journal import Entry, Journal
from socialpub.sandbox.network import Network
from socialpub.sandbox.pinterest.network import Pinterest
from socialpub.sandbox.tiktok.network import TikTok
from socialpub.sandbox.x.network import X

KEPT_REQUESTS = 10_000
SECRET_PARAMETERS = frozenset({"upload_token"})
ID_EPOCH_MS = 1288834974657
"""Ids count milliseconds since then in their upper bits, which makes them 19 digits today."""


class Clock(Protocol):
    def now(self) -> datetime: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Request:
    """One recorded request, without its credentials."""

    network: str
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    json: Any = None
    """The JSON body, parsed; None when there is none."""
    fields: tuple[tuple[str, str | None, int], ...] = ()
    """The parts of a multipart body: name, declared type, bytes."""


class World:
    def __init__(self, clock: Clock | None = None, *, journal: Path | None = None) -> None:
        """`clock` needs `now() -> aware datetime`. `journal` keeps accounts, tokens and posts over a restart."""
        self.clock = clock or SystemClock()
        self.instant_faults = False
        """Raise `Hang` and `ConnectionCut` through the ASGI application instead of really waiting or cutting."""
        self.serving = False
        """It listens on a port: what a network fetches by itself is fetched in the background, without being asked."""
        self.record = False
        self.requests: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        self._journal = Journal(journal) if journal else None
        self._last_id = 0
        self._closing: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._begin()
        if self._journal is not None:
            for entry in self._journal.read():
                self._remember(entry)

    def _begin(self) -> None:
        self.x = X(self)
        self.tiktok = TikTok(self)
        self.pinterest = Pinterest(self)
        self.networks: dict[str, Network] = {"x": self.x, "tiktok": self.tiktok, "pinterest": self.pinterest}

    def reset(self) -> None:
        """Forget everything, the journal's lines too; calls that hang are let go."""
        self.close()
        if self._journal is not None:
            self._journal.clear()
        self.requests.clear()
        self._begin()

    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self) -> str:
        """19 digits, larger than every id before."""
        milliseconds = int(self.now().timestamp() * 1000)
        self._last_id = max(self._last_id + 1, (milliseconds - ID_EPOCH_MS) << 22, 10**18 + 1000)
        return str(self._last_id)

    def saw_id(self, used: str) -> None:
        """An id from an earlier life; new ones come after it."""
        if used.isdecimal() and len(used) <= 19:
            self._last_id = max(self._last_id, int(used))

    # --- the journal ---------------------------------------------------------------------------------------------

    def write(self, network: str, kind: str, **facts: Any) -> None:
        if self._journal is not None:
            self._journal.write({"network": network, "kind": kind, **facts})

    def _remember(self, entry: Entry) -> None:
        network = self.networks.get(str(entry.pop("network", "")))
        kind = str(entry.pop("kind", ""))
        if network is not None:
            recall = getattr(network, f"recall_{kind}", None) or getattr(network.tokens, f"recall_{kind}", None)
            if recall is not None:
                recall(**entry)

    # --- requests ------------------------------------------------------------------------------------------------

    def note(self, network: str, call: Call) -> None:
        if not self.record:
            return
        data = None
        fields: tuple[tuple[str, str | None, int], ...] = ()
        if call.content_type == "application/json":
            with contextlib.suppress(ValueError):
                data = json.loads(call.body)
        elif call.sink is not None:
            fields = call.sink.parts()
        elif call.content_type == "multipart/form-data":
            with contextlib.suppress(Exception):
                fields = tuple((part.name, part.content_type, len(part.data)) for part in call.parts())
        query = {name: value for name, value in call.query().items() if name not in SECRET_PARAMETERS}
        self.requests.append(Request(network, call.method, call.path, query, call.content_type, data, fields))

    # --- the end -------------------------------------------------------------------------------------------------

    def closing_event(self) -> asyncio.Event:
        """Set when the world closes; belongs to the running loop."""
        event = asyncio.Event()
        self._closing.add((asyncio.get_running_loop(), event))
        return event

    def forget_closing_event(self, event: asyncio.Event) -> None:
        self._closing = {pair for pair in self._closing if pair[1] is not event}

    def close(self) -> None:
        """Let go of every call that hangs, from whatever thread; the world stays usable."""
        for loop, event in tuple(self._closing):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)
        if self._journal is not None:
            self._journal.close()
