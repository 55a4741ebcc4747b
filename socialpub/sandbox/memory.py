"""The parts of a network's memory: time, ids, journal, call log, rate windows and the bytes that pages show."""

import json
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


def json_facts(kept: object, names: Iterable[str]) -> dict[str, Any]:
    """Return these fields as JSON data, for the journal and the control API."""
    return {name: _json_value(getattr(kept, name)) for name in names}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_json_value(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def from_facts(kind: type[T], facts: dict[str, Any]) -> T:
    """Build an object from the journal. Fields that only older versions wrote are ignored."""
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # only dataclasses are journaled
    return kind(**{name: value for name, value in facts.items() if name in known})


# --- the journal -----------------------------------------------------------------------------------------------------

JournalEntry = dict[str, Any]


class Journal:
    """What happened, one JSON line each, appended and flushed. Without a path nothing is kept.

    A line that a kill cut off stays in the file and is skipped.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[JournalEntry]:
        if self.path is None or not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if isinstance(entry, dict):
                    yield entry

    def write(self, network: str, kind: str, **facts: Any) -> None:
        if self.path is None:
            return
        if self._file is None:
            self._file = self.path.open("ab")
            if self._file.tell() > 0:
                self._file.write(b"\n")
        entry = {"network": network, "kind": kind, **facts}
        self._file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        self.close()
        if self.path is not None:
            self.path.write_bytes(b"")


# --- time and ids ----------------------------------------------------------------------------------------------------

EPOCH_MS = 1288834974657
"""The upper bits of an id count milliseconds since then. Today that gives 19 digits."""


class SandboxClock(Protocol):
    def now(self) -> datetime: ...


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class NetworkClock:
    """One network's own time, which may differ from the world's."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self.skew_seconds = 0.0

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.skew_seconds)


class IdSequence:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._last = 0

    def new(self) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        self._last = max(self._last + 1, (milliseconds - EPOCH_MS) << 22, 10**18 + 1000)
        return str(self._last)

    def reserve(self, used: str) -> None:
        """Remember an id from before a restart: new ids are larger."""
        if used.isdecimal() and len(used) <= 19:
            self._last = max(self._last, int(used))


@dataclass(slots=True)
class SandboxContext:
    """A network's share of the world. All networks share the ids and the journal."""

    clock: NetworkClock
    ids: IdSequence
    journal: Journal
    serving: bool = False
    """It listens on a port. Then a network fetches URLs in the background, without a caller that asks."""


# --- calls -----------------------------------------------------------------------------------------------------------

KEPT_CALLS = 50_000


class CallRecord(NamedTuple):
    """A call that ended. `status` 0: the caller got no answer."""

    endpoint: str
    status: int
    when: datetime
    """By the world's clock."""


class CallLog:
    """The calls of one network: how many, their statuses, and how many run at the same time."""

    def __init__(self, clock: SandboxClock) -> None:
        self.calls: list[CallRecord] = []
        """The latest calls, oldest first; `counts` never forgets."""
        self.counts: Counter[str] = Counter()
        self.in_flight = 0
        self.held = 0
        """Calls in flight whose fault never answers. They wait for their caller to disconnect."""
        self.most_in_flight = 0
        self.most_in_flight_of: dict[str, int] = {}
        """By account id."""
        self._clock = clock
        self._in_flight_of: Counter[str] = Counter()

    def call_began(self, account_id: str) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if account_id:
            self._in_flight_of[account_id] += 1
            most = self.most_in_flight_of.get(account_id, 0)
            self.most_in_flight_of[account_id] = max(self._in_flight_of[account_id], most)

    def call_ended(self, account_id: str, endpoint: str, status: int) -> None:
        self.in_flight -= 1
        if account_id:
            self._in_flight_of[account_id] -= 1
        self.counts[endpoint] += 1
        self.calls.append(CallRecord(endpoint, status, self._clock.now()))
        if len(self.calls) > 2 * KEPT_CALLS:
            del self.calls[:-KEPT_CALLS]

    def statuses(self, endpoint: str) -> list[int]:
        """Return the statuses of one endpoint's calls, oldest first."""
        return [call.status for call in self.calls if call.endpoint == endpoint]


# --- rate windows ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class FixedWindow:
    limit: int
    used: int
    reset: float
    """Unix time at which the window ends."""

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def over(self) -> bool:
        return self.used > self.limit


class FixedWindows:
    """Windows that begin with their first call."""

    def __init__(self) -> None:
        self._open: dict[Hashable, FixedWindow] = {}

    def count(self, key: Hashable, limit: int, seconds: float, now: float) -> FixedWindow:
        """Count one call. A refused call does not lengthen the window."""
        window = self._open.get(key)
        if window is None or now >= window.reset or now < window.reset - seconds:
            window = self._open[key] = FixedWindow(limit, 0, now + seconds)
        window.limit = limit
        window.used += 1
        return window


class SlidingWindows:
    def __init__(self) -> None:
        self._calls: dict[Hashable, deque[float]] = {}

    def admits(self, key: Hashable, limit: int, seconds: float, now: float) -> bool:
        """Count one call and return True, unless the last `seconds` hold `limit` calls already."""
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now - seconds:
            calls.popleft()
        if len(calls) >= limit:
            return False
        calls.append(now)
        return True


# --- bytes -----------------------------------------------------------------------------------------------------------

CAPACITY_BYTES = 64 * 1024 * 1024


class ByteCache:
    """Bytes for the pages, up to a total. The oldest make room. Size and hash of media are never kept here."""

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self.capacity = capacity
        self.used = 0
        self._items: dict[Hashable, bytes] = {}

    def put(self, key: Hashable, data: bytes) -> None:
        self.take(key)
        if len(data) > self.capacity:
            return
        self._items[key] = data
        self.used += len(data)
        while self.used > self.capacity:
            self.take(next(iter(self._items)))

    def get(self, key: Hashable) -> bytes | None:
        return self._items.get(key)

    def take(self, key: Hashable) -> bytes | None:
        data = self._items.pop(key, None)
        self.used -= len(data or b"")
        return data
