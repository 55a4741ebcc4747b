"""The parts of a network's memory: time, ids, journal, apps, tokens, call log, rate windows, the bytes for pages."""

import json
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from pydantic import TypeAdapter

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
    """Build an object from the journal."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # mypy does not know that types are hashable
    return adapter.validate_python(facts)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


# --- the journal -----------------------------------------------------------------------------------------------------

JournalEntry = dict[str, Any]


class Journal:
    """A file of events, one JSON line each, appended and flushed. Without a path, the journal does not keep events.

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


class IdSequence:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._last = 0

    def new(self) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        self._last = max(self._last + 1, (milliseconds - EPOCH_MS) << 22, 10**18 + 1000)
        return str(self._last)

    def reserve(self, used: str) -> None:
        """Record an id from before a restart, so that new ids are larger."""
        if used.isdecimal() and len(used) <= 19:
            self._last = max(self._last, int(used))


@dataclass(slots=True)
class SandboxContext:
    """The objects that all networks share."""

    clock: SandboxClock
    ids: IdSequence
    journal: Journal
    serving: bool = False
    """Whether the sandbox listens on a port. If so, networks fetch URLs in the background."""


# --- calls -----------------------------------------------------------------------------------------------------------

KEPT_CALLS = 50_000


class CallLog:
    """The calls of one network: how many, their statuses, and how many run at the same time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        """Endpoint and status of the latest calls, oldest first; `counts` never forgets. Status 0: the caller got no
        answer."""
        self.counts: Counter[str] = Counter()
        self.in_flight = 0
        self.held = 0
        """The calls in progress whose fault never responds. They wait until their caller disconnects."""
        self.most_in_flight_of: dict[str, int] = {}
        """By account id."""
        self._in_flight_of: Counter[str] = Counter()

    def call_began(self, account_id: str) -> None:
        self.in_flight += 1
        if account_id:
            self._in_flight_of[account_id] += 1
            most = self.most_in_flight_of.get(account_id, 0)
            self.most_in_flight_of[account_id] = max(self._in_flight_of[account_id], most)

    def call_ended(self, account_id: str, endpoint: str, status: int) -> None:
        self.in_flight -= 1
        if account_id:
            self._in_flight_of[account_id] -= 1
        self.counts[endpoint] += 1
        self.calls.append((endpoint, status))
        if len(self.calls) > 2 * KEPT_CALLS:
            del self.calls[:-KEPT_CALLS]

    def statuses(self, endpoint: str) -> list[int]:
        return [status for name, status in self.calls if name == endpoint]


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


class TokenStore:
    """A refresh token works once. The pairs of one consent are a family, and a revocation ends all of them."""

    def __init__(self, clock: SandboxClock, write: Callable[..., None]) -> None:
        self._clock = clock
        self._write = write
        self._by_access: dict[str, Token] = {}
        self._by_refresh: dict[str, Token] = {}

    def add(self, token: Token) -> None:
        self._keep(token)
        self._write("token", **asdict(token))

    def _keep(self, token: Token) -> None:
        self._by_access[token.access] = token
        if token.refresh is not None:
            self._by_refresh[token.refresh] = token

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
        token.spent_at = self._now()
        self.replay_spent(token.access, access_survives)
        self._write("spent", access=token.access, access_survives=access_survives)

    def end_family(self, family: str) -> None:
        self.replay_family_ended(family)
        self._write("family_ended", family=family)

    def revoke(self, text: str, client_id: str | None = None) -> bool:
        """End the family of an access or refresh token. Return False if the app does not have this token."""
        token = self._by_access.get(text) or self._by_refresh.get(text)
        if token is None or (client_id is not None and token.client_id not in (None, client_id)):
            return False
        self.end_family(token.family)
        return True

    def end_all(self, account_id: str) -> None:
        for token in self.of(account_id):
            if not token.dead:
                self.end_family(token.family)

    def expire(self, account_id: str) -> None:
        """End the account's access tokens now. Its refresh tokens still work."""
        for token in list(self._by_access.values()):
            if token.account_id == account_id:
                token.expires_at = 0

    def of(self, account_id: str) -> list[Token]:
        return [token for token in list(self._by_access.values()) if token.account_id == account_id]

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_token(self, **facts: Any) -> None:
        self._keep(from_facts(Token, facts))

    def replay_spent(self, access: str, access_survives: bool) -> None:
        token = self._by_access.get(access)
        if token is not None:
            token.spent = True
            if not access_survives:
                token.expires_at = 0

    def replay_family_ended(self, family: str) -> None:
        for token in list(self._by_access.values()):
            if token.family == family:
                token.dead = True
