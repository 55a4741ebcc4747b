"""The components of the appliance, built once per process and passed as `rt`."""

import asyncio
import contextlib
import contextvars
import secrets as random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from socialpub.core.clock import Clock, SystemClock, stamp
from socialpub.core.sd_notify import ServiceManager
from socialpub.core.secrets import crypto, redaction, signed_urls
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import database, secret_key, upgrade
from socialpub.db.connection import Database
from socialpub.db.database import ApplianceDatabase
from socialpub.db.models import ProfileRow
from socialpub.db.process_lock import ProcessLock
from socialpub.db.tables import profile_rows
from socialpub.media.decoder import memory
from socialpub.media.files import Files
from socialpub.providers import registry
from socialpub.providers.registry import Loaded

if TYPE_CHECKING:
    # Most commands neither list posts nor call a network, and these modules are slow to import.
    from socialpub.db.queries.post_list import Totals
    from socialpub.providers.auth import Tokens
    from socialpub.providers.base import Provider
    from socialpub.providers.http import Http

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 8
"""The threads that deliver to one network, and its lookups of host names. An account has at most one running delivery,
and most of the time of a delivery is waiting for the network, so eight accounts at once are enough for one machine."""


_write_check: "contextvars.ContextVar[Callable[[Runtime, Database], None] | None]" = contextvars.ContextVar(
    "write_check", default=None
)


@contextlib.contextmanager
def check_writes(check: "Callable[[Runtime, Database], None]") -> Iterator[None]:
    """Run `check` first in the transaction of every write of this task. An error of the check ends the write."""
    token = _write_check.set(check)
    try:
        yield
    finally:
        _write_check.reset(token)


class CausedTask(StrEnum):
    """The background tasks that a write causes."""

    ACCOUNT_DATA = "account data"
    AVATARS = "avatars"
    REVOCATION = "revocation"


class Wakeup(Protocol):
    """Wakes the worker for the due deliveries of a profile, or for a task. The reconciler repeats lost wake-ups."""

    def notify(self, network: str, profile_id: str) -> None: ...

    def run_soon(self, task: str) -> None: ...


class NoWakeup:
    """Leaves all deliveries to the reconciler."""

    def notify(self, network: str, profile_id: str) -> None:
        pass

    def run_soon(self, task: str) -> None:
        pass


# --- state of one process, outside the database. Times are on the monotonic clock. -----------------------------------


class Engine:
    """What this process remembers about deliveries and about the clocks of networks."""

    NOTED_SECONDS = 10.0
    """The clock of a network is set at most this often."""

    def __init__(self) -> None:
        self._kept_results: dict[str, tuple[Any, ...]] = {}
        self._read_back_at: dict[str, float] = {}
        self._announced_at: dict[str, float] = {}
        self._clocks: dict[str, tuple[float, float]] = {}
        """By network: its Unix time minus the monotonic clock, and when this was noted."""
        self._ages: dict[str, int] = {}

    def keep_result(self, delivery_id: str, *result: Any) -> None:
        """Keep a result that the disk did not take, for the next claim of the delivery."""
        self._kept_results[delivery_id] = result

    def take_result(self, delivery_id: str) -> tuple[Any, ...] | None:
        return self._kept_results.pop(delivery_id, None)

    def note_announcement(self, delivery_id: str, at: float) -> None:
        """Note when the first commit was announced."""
        self._announced_at[delivery_id] = at

    def announced_at(self, delivery_id: str) -> float | None:
        return self._announced_at.get(delivery_id)

    def note_read_back(self, delivery_id: str, at: float) -> None:
        """Note when a round of read-backs began, or when the account was last read."""
        self._read_back_at[delivery_id] = at

    def read_back_at(self, delivery_id: str) -> float | None:
        return self._read_back_at.get(delivery_id)

    def forget(self, delivery_id: str) -> None:
        """Forget a delivery that has ended."""
        self._read_back_at.pop(delivery_id, None)
        self._announced_at.pop(delivery_id, None)

    def set_network_clock(self, provider: str, at: datetime | None, now: float) -> None:
        """Set the network's clock to `at`, the `Date` of a response. `now` is on the monotonic clock."""
        noted = self._clocks.get(provider)
        if at is not None and (noted is None or now - noted[1] >= self.NOTED_SECONDS):
            self._clocks[provider] = (at.timestamp() - now, now)

    def network_now(self, provider: str, now: float) -> datetime | None:
        """Return the time at the network. None: it has not responded to this process yet."""
        noted = self._clocks.get(provider)
        return None if noted is None else datetime.fromtimestamp(noted[0] + now, UTC)

    def reaches_age(self, delivery_id: str, age: int) -> bool:
        """Note the age of a published post without an id. Return whether the age is new for this process."""
        former = self._ages.get(delivery_id, 0)
        self._ages[delivery_id] = age
        return age > former

    def end_ages(self, delivery_id: str) -> None:
        """Forget the age: the post has its id."""
        self._ages.pop(delivery_id, None)


class TokenKeeper:
    """New tokens that the disk did not take."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[ProfileRow, Tokens, datetime]] = {}

    def keep_pending(self, profile: ProfileRow, response: "Tokens", asked_at: datetime) -> None:
        """Keep new tokens until they are stored. `profile` is the row before the refresh."""
        self._pending[profile.id] = (profile, response, asked_at)

    def find_pending(self, profile_id: str) -> "tuple[ProfileRow, Tokens, datetime] | None":
        return self._pending.get(profile_id)

    def end_pending(self, profile_id: str) -> None:
        self._pending.pop(profile_id, None)

    def list_pending(self) -> list[str]:
        return list(self._pending)


QueryKey = tuple[str, bytes | None, str | None, str]
"""The profile, its sealed token, the time of its account data, and the query."""


class OpenQueries:
    """The kept responses of networks to queries of the owner and callers, and the open queries."""

    def __init__(self) -> None:
        self._kept: dict[QueryKey, tuple[float, object]] = {}
        self._open: dict[str, tuple[tuple[object, ...], asyncio.Task[Any]]] = {}
        """By profile. Only the event loop uses this."""

    def keep(self, key: QueryKey, until: float, result: object) -> None:
        """Keep a response or an error."""
        self._kept[key] = (until, result)

    def recall(self, key: QueryKey, now: float) -> Any:
        """Return the kept response or error, or None."""
        for old in [old for old, (until, _) in list(self._kept.items()) if until <= now]:
            self._kept.pop(old, None)
        return self._kept.get(key, (0.0, None))[1]

    async def send(self, profile_id: str, key: tuple[object, ...], load: Callable[[], T]) -> T | None:
        """Load on a new thread, which equal queries share. Wait for another query about the profile: None."""
        if profile_id not in self._open:
            task = asyncio.create_task(run_in_thread(load))
            task.add_done_callback(lambda ended: self._end(profile_id, ended))
            self._open[profile_id] = key, task
        open_key, task = self._open[profile_id]
        if open_key == key:
            return await asyncio.shield(task)
        await asyncio.wait({task})
        return None

    def _end(self, profile_id: str, task: "asyncio.Task[Any]") -> None:
        del self._open[profile_id]
        if not task.cancelled():
            task.exception()  # reads the error, because the callers may no longer wait


class Pauses:
    """The pauses after failures, by what failed."""

    def __init__(self) -> None:
        self._ends: dict[object, float] = {}

    def begin(self, subject: object, until: float) -> None:
        self._ends[subject] = until

    def is_over(self, subject: object, now: float) -> bool:
        return self._ends.get(subject, now) <= now

    def end(self, subject: object) -> None:
        self._ends.pop(subject, None)


class MediaStore:
    """The files that arrive, and the size of the files that the database does not count."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        """Taken by each fetch on the event loop before it parses a few lines."""
        self.arriving_bytes = 0
        """Bytes of uploads without a row."""
        self._fetching: Counter[str] = Counter()
        self._measured: tuple[float, int] | None = None

    @contextlib.contextmanager
    def count_arriving(self, size_bytes: int) -> Iterator[None]:
        """Count these bytes while they arrive. Only on the event loop."""
        self.arriving_bytes += size_bytes
        try:
            yield
        finally:
            self.arriving_bytes -= size_bytes

    def may_fetch(self, key_id: str, max_requests: int, kept_for_others: int) -> bool:
        """Return whether another request of this key may fetch media by URL."""
        limit = max_requests - kept_for_others if self._fetching[key_id] else max_requests
        return self._fetching.total() < limit

    @contextlib.contextmanager
    def count_fetching(self, key_id: str) -> Iterator[None]:
        """Count a request that fetches media by URL. Only on the event loop."""
        self._fetching[key_id] += 1
        try:
            yield
        finally:
            self._fetching -= Counter([key_id])

    def measure(self, now: float, max_age: float, walk: Callable[[], int]) -> int:
        """Return the size of renditions, thumbnails and avatars, at most this old."""
        if self._measured is None or now >= self._measured[0] + max_age:
            self._measured = now, walk()
        return self._measured[1]


@dataclass(slots=True)
class Runtime:
    settings: Settings
    clock: Clock
    db: ApplianceDatabase
    """Reads, over a read-only connection of each thread. `write` changes rows."""
    secrets: Secrets
    files: Files
    providers: "Loaded[Provider]"
    process: ProcessLock
    instance_id: str
    """The id of this installation in `/healthz`. It is not a secret."""
    wakeup: Wakeup = field(default_factory=NoWakeup)
    service_manager: ServiceManager = field(default_factory=ServiceManager)
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when this process does not begin new work."""
    running_tasks: dict[str, float] = field(default_factory=dict)
    """When each running periodic task of this process was due."""
    task_failures: dict[str, int] = field(default_factory=dict)
    """By periodic task of this process: its failures in a row."""
    engine: Engine = field(default_factory=Engine)
    tokens: TokenKeeper = field(default_factory=TokenKeeper)
    queries: OpenQueries = field(default_factory=OpenQueries)
    avatar_pauses: Pauses = field(default_factory=Pauses)
    media: MediaStore = field(default_factory=MediaStore)
    opened_totals: "Totals | None" = None
    """Of the event loop."""
    opened_http: "Http | None" = None
    """The client for calls to networks, once this process needs one."""

    @property
    def post_totals(self) -> "Totals":
        if self.opened_totals is None:
            from socialpub.db.queries.post_list import Totals

            self.opened_totals = Totals()
        return self.opened_totals

    @property
    def http(self) -> "Http":
        if self.opened_http is None:
            from socialpub.providers.http import Http

            self.opened_http = Http(lookups=WORKERS)
        return self.opened_http

    def http_for(self, provider: str) -> "Http":
        return self.http.for_network(provider)

    def now(self) -> datetime:
        return self.clock.now()

    def stamp(self) -> str:
        return stamp(self.clock.now())

    def write(self, fn: "Callable[Concatenate[Runtime, Database, P], T]", *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(rt, tx, *args)` in a transaction and wait for the disk. Do not call this on the event loop."""
        return self.db.write(self._checked(fn, args, kwargs))

    def write_soon(
        self, fn: "Callable[Concatenate[Runtime, Database, P], T]", *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Do the same on the event loop."""
        return self.db.write_soon(self._checked(fn, args, kwargs))

    def _checked(self, fn: Callable[..., T], args: Any, kwargs: Any) -> Callable[[Database], T]:
        check = _write_check.get()  # the writer's thread does not have the context of the caller

        def run(tx: Database) -> T:
            if check is not None:
                check(self, tx)
            return fn(self, tx, *args, **kwargs)

        return run

    async def read_in_thread(self, fn: Callable[[Database], T]) -> T:
        """Run a long read in a thread, so it does not block the event loop."""
        return await asyncio.to_thread(lambda: fn(self.db))

    def close(self) -> None:
        if self.opened_http is not None:
            self.opened_http.close()
        self.db.stop()
        self.process.close()


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    http: "Http | None" = None,
    role: str = "process",
    **parts: Any,
) -> Runtime:
    """Open the database and build all components. Raise OperatorError."""
    clock = clock or SystemClock()
    redaction.add_configured_secrets(*settings.secret_values())
    secret_key.finish_rotation(settings.secret_key_file, settings.database_file, settings.run_dir)
    secrets = crypto.load(settings.secret_key_file)

    @lru_cache(maxsize=4096)
    def media_url(storage_key: str, second: int) -> str:
        return signed_urls.media_url(settings, secrets, storage_key, datetime.fromtimestamp(second, UTC))

    db = ApplianceDatabase(
        settings.database_file,
        settings.run_dir,
        clock,
        secrets,
        media_url=lambda storage_key: media_url(storage_key, int(clock.now().timestamp())),
    )
    secret_key.accept_former_urls(db, secrets)
    process = ProcessLock(settings.run_dir / "owners", f"{role}-{random.token_hex(6)}")
    # A command that changes the key looks for processes, and finds this process from now on.
    with upgrade.exclusive(settings.run_dir):
        secret_key.check_key(db, secrets)
    memory.share_memory_in(settings.run_dir / "decoders")
    return Runtime(
        settings=settings,
        clock=clock,
        db=db,
        secrets=secrets,
        files=Files(settings.media_dir, int(settings.health.disk_floor_bytes), clock.monotonic),
        # A network that is no longer enabled stays while it has profiles: their posts and their log remain.
        providers=registry.build(settings.providers, profile_rows.list_providers(db)),
        opened_http=http,
        instance_id=database.ensure_instance_id(db),
        process=process,
        **parts,
    )


async def run_in_thread(fn: Callable[[], T]) -> T:
    """Run `fn()` on a new thread. A stop of the process does not wait for the thread, unlike `asyncio.to_thread`."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else act())

    def work() -> None:
        try:
            result = context.run(fn)
        except BaseException as error:
            failure = error
            settle(lambda: future.set_exception(failure))
        else:
            settle(lambda: future.set_result(result))

    threading.Thread(target=work, name="run-in-thread", daemon=True).start()
    return await future
