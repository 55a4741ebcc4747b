"""The parts of a network's memory: time, ids, journal, tokens, rate windows, the bytes for pages."""

import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


# --- the journal -----------------------------------------------------------------------------------------------------


class Journal:
    """A file of changes, one JSON line each, appended and flushed. Without a path, the journal keeps nothing.

    A line that a kill cut off stays in the file and is skipped.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[dict[str, Any]]:
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

    def write(self, entry: dict[str, Any]) -> None:
        if self.path is None:
            return
        if self._file is None:
            self._file = self.path.open("ab")
            if self._file.tell() > 0:
                self._file.write(b"\n")
        self._file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        self.close()
        if self.path is not None:
            self.path.write_bytes(b"")


class Table(dict[Any, T]):
    """Objects of one kind by key, oldest first. `save` writes a new or changed object to the journal.

    The journal holds whole objects, so a restart needs no code of a network.
    """

    def __init__(
        self,
        network: str,
        name: str,
        kind: type[T],
        journal: Journal,
        *,
        key: Callable[[T], Any] = attrgetter("id"),
        on_keep: Callable[[T], None] = lambda _: None,
    ) -> None:
        """Create a table. `on_keep` gets every object that is saved or restored, before it is in the table."""
        super().__init__()
        self._entry = {"network": network, "table": name}
        self._adapter, self._journal = _adapter(kind), journal
        self._key, self._on_keep = key, on_keep

    def save(self, item: T) -> T:
        self._keep(item)
        if self._journal.path is not None:
            self._journal.write({**self._entry, "item": self._adapter.dump_python(item, mode="json")})
        return item

    def remove(self, key: str) -> T:
        self._journal.write({**self._entry, "removed": key})
        return self.pop(key)

    def replay(self, entry: dict[str, Any]) -> None:
        """Apply an entry of the journal."""
        if "removed" in entry:
            self.pop(entry["removed"], None)
        else:
            self._keep(self._adapter.validate_python(entry["item"]))

    def facts(self) -> list[Any]:
        """Return the objects as JSON data."""
        return [self._adapter.dump_python(item, mode="json") for item in list(self.values())]

    def _keep(self, item: T) -> None:
        self._on_keep(item)
        self[self._key(item)] = item


# --- time and ids ----------------------------------------------------------------------------------------------------

EPOCH_MS = 1288834974657
"""The upper bits of an id count milliseconds since then. Today that gives 19 digits."""


class SandboxClock(Protocol):
    def now(self) -> datetime: ...


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class IdSequence:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._last = 0

    def new(self) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        self._last = max(self._last + 1, (milliseconds - EPOCH_MS) << 22, 10**18 + 1000)
        return str(self._last)


class SandboxContext(NamedTuple):
    """The objects that all networks share."""

    clock: SandboxClock
    ids: IdSequence
    journal: Journal


# --- rate windows ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class FixedWindow:
    """A window that begins with its first call."""

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


# --- bytes -----------------------------------------------------------------------------------------------------------


class ByteCache(dict[Hashable, bytes]):
    """Bytes for the pages, up to a total. The oldest make room. Size and hash of media are never kept here."""

    capacity = 64 * 1024 * 1024

    def put(self, key: Hashable, data: bytes) -> None:
        self.pop(key, None)
        if len(data) <= self.capacity:
            self[key] = data
        while self.used > self.capacity:
            del self[next(iter(self))]

    @property
    def used(self) -> int:
        return sum(map(len, self.values()))


# --- tokens ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Token:
    """A pair of an access and a refresh token. Times are Unix seconds."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    account_id: str
    scopes: tuple[str, ...]
    client_id: str | None
    """None: any app may refresh it (granted by hand)."""
    family: str
    expires_at: float
    refresh_expires_at: float
    spent: bool = False
    """Whether the refresh token was used."""
    spent_at: float = 0
    dead: bool = False
    """Whether both tokens are invalid."""
    successor: str = field(default="", repr=False)
    """The refresh token that followed, where a network returns it again."""


class TokenTable(Table[Token]):
    """Pairs by access token. A refresh token works once. The pairs of one consent are a family, and a revocation ends
    all of them."""

    def __init__(self, network: str, clock: SandboxClock, journal: Journal) -> None:
        super().__init__(network, "tokens", Token, journal, key=attrgetter("access"), on_keep=self._index)
        self._clock = clock
        self._by_refresh: dict[str, Token] = {}

    def _index(self, token: Token) -> None:
        if token.refresh is not None:
            self._by_refresh[token.refresh] = token

    def bearer(self, access: str | None) -> Token | None:
        """Return the token of an API call, or None if it is not valid."""
        token = self.get(access)
        return token if token is not None and not token.dead and self._now() < token.expires_at else None

    def by_refresh(self, refresh: str | None) -> Token | None:
        """Return the pair, even a spent or dead one."""
        return self._by_refresh.get(refresh or "")

    def of(self, account_id: str) -> list[Token]:
        return [token for token in list(self.values()) if token.account_id == account_id]

    def may_refresh(self, token: Token, client_id: str, grace_seconds: float = 0) -> bool:
        """Return whether the refresh token of a pair works. A used one works for `grace_seconds` more."""
        fresh = not token.spent or self._now() - token.spent_at < grace_seconds
        alive = fresh and not token.dead and self._now() < token.refresh_expires_at
        return alive and token.client_id in (None, client_id)

    def spend(self, token: Token, *, access_survives: bool) -> None:
        token.spent, token.spent_at = True, self._now()
        if not access_survives:
            token.expires_at = 0
        self.save(token)

    def end(self, token: Token) -> None:
        token.dead = True
        self.save(token)

    def end_family(self, family: str) -> None:
        for token in list(self.values()):
            if token.family == family and not token.dead:
                self.end(token)

    def expire(self, account_id: str) -> None:
        """End the account's access tokens now. Its refresh tokens still work."""
        for token in self.of(account_id):
            token.expires_at = 0

    def _now(self) -> float:
        return self._clock.now().timestamp()
