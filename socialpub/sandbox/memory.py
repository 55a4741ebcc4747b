"""The parts of a network's memory: time, ids, journal, apps, tokens, call log, rate windows, the bytes for pages."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from pydantic import TypeAdapter

from socialpub.sandbox.messages import SandboxRequest

T = TypeVar("T")


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def facts_of(item: object) -> Any:
    """Return a dataclass object as JSON data, for the journal and the control API."""
    return _adapter(type(item)).dump_python(item, mode="json")


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
        self._kind, self._journal = kind, journal
        self._key, self._on_keep = key, on_keep

    def save(self, item: T) -> T:
        self._keep(item)
        if self._journal.path is not None:
            self._journal.write({**self._entry, "item": facts_of(item)})
        return item

    def remove(self, key: str) -> T:
        self._journal.write({**self._entry, "removed": key})
        return self.pop(key)

    def replay(self, entry: dict[str, Any]) -> None:
        """Apply an entry of the journal."""
        if "removed" in entry:
            self.pop(entry["removed"], None)
        else:
            self._keep(_adapter(self._kind).validate_python(entry["item"]))

    def facts(self) -> list[Any]:
        return [facts_of(item) for item in list(self.values())]

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


@dataclass(slots=True)
class SandboxContext:
    """The objects that all networks share."""

    clock: SandboxClock
    ids: IdSequence
    journal: Journal
    serving: bool = False
    """Whether the sandbox listens on a port. If so, networks fetch URLs in the background."""


# --- calls -----------------------------------------------------------------------------------------------------------


class CallLog:
    """The calls of one network: how many have ended, and how many are in progress."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.in_flight = 0
        self.held = 0
        """The calls in progress whose fault never responds. They wait until their caller disconnects."""

    def call_began(self, request: SandboxRequest) -> None:  # for stand-ins
        self.in_flight += 1

    def call_ended(self, request: SandboxRequest, endpoint: str, status: int) -> None:  # noqa: ARG002  # for stand-ins
        """Count a call. Status 0: the caller got no response."""
        self.in_flight -= 1
        self.counts[endpoint] += 1


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

    def __contains__(self, key: Hashable) -> bool:
        return key in self._items

    def take(self, key: Hashable) -> bytes | None:
        data = self._items.pop(key, None)
        self.used -= len(data or b"")
        return data


# --- apps, authorization codes, tokens -------------------------------------------------------------------------------


@dataclass(slots=True)
class SandboxApp:
    client_id: str
    client_secret: str | None = field(default="", repr=False)
    """Empty: any. None: a public client, which has none."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that the network allows."""

    def accepts(self, secret: str) -> bool:
        return bool(secret) and self.client_secret in ("", secret)


@dataclass(slots=True)
class AuthorizationCode:
    """The consent of an account, until the app exchanges it for tokens."""

    client_id: str
    redirect_uri: str
    account_id: str
    scopes: tuple[str, ...]
    expires_at: float
    """Unix seconds."""
    challenge: str = ""
    """Empty: the app sent none."""
    method: str = ""
    """Of the challenge: `S256` or `plain`."""


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


class TokenStore:
    """A refresh token works once. The pairs of one consent are a family, and a revocation ends all of them."""

    def __init__(self, network: str, clock: SandboxClock, journal: Journal) -> None:
        self._clock = clock
        self._by_access = Table(network, "tokens", Token, journal, key=attrgetter("access"), on_keep=self._index)
        self._by_refresh: dict[str, Token] = {}

    @property
    def table(self) -> Table[Token]:
        return self._by_access

    def _index(self, token: Token) -> None:
        if token.refresh is not None:
            self._by_refresh[token.refresh] = token

    def add(self, token: Token) -> None:
        self._by_access.save(token)

    def bearer(self, access: str | None) -> Token | None:
        """Return the token of an API call, or None if it is not valid."""
        token = self._by_access.get(access or "")
        if token is None or token.dead or self._now() >= token.expires_at:
            return None
        return token

    def by_access(self, access: str | None) -> Token | None:
        """Return the pair, even an expired or dead one."""
        return self._by_access.get(access or "")

    def by_refresh(self, refresh: str) -> Token | None:
        """Return the pair, even a spent or dead one."""
        return self._by_refresh.get(refresh)

    def may_refresh(self, token: Token, client_id: str, grace_seconds: float = 0) -> bool:
        """Return whether the refresh token of a pair works. A used one works for `grace_seconds` more."""
        fresh = not token.spent or self._now() - token.spent_at < grace_seconds
        alive = fresh and not token.dead and self._now() < token.refresh_expires_at
        return alive and token.client_id in (None, client_id)

    def spend(self, token: Token, *, access_survives: bool) -> None:
        token.spent, token.spent_at = True, self._now()
        if not access_survives:
            token.expires_at = 0
        self._by_access.save(token)

    def end(self, token: Token) -> None:
        token.dead = True
        self._by_access.save(token)

    def end_family(self, family: str) -> None:
        for token in list(self._by_access.values()):
            if token.family == family and not token.dead:
                self.end(token)

    def revoke(self, text: str, client_id: str | None = None) -> bool:
        """End the family of an access or refresh token. Return False if the app does not have this token."""
        token = self._by_access.get(text) or self._by_refresh.get(text)
        if token is None or (client_id is not None and token.client_id not in (None, client_id)):
            return False
        self.end_family(token.family)
        return True

    def end_all(self, account_id: str) -> None:
        for token in self.of(account_id):
            self.end_family(token.family)

    def expire(self, account_id: str) -> None:
        """End the account's access tokens now. Its refresh tokens still work."""
        for token in self.of(account_id):
            token.expires_at = 0

    def of(self, account_id: str) -> list[Token]:
        return [token for token in list(self._by_access.values()) if token.account_id == account_id]

    def _now(self) -> float:
        return self._clock.now().timestamp()
