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
from socialpub.db.delivery import Delivery
from socialpub.db.locks import ProcessLock
from socialpub.db.tables import profile_rows
from socialpub.db.tables.profile_rows import Profile
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


class Wakeup(Protocol):
    """Wakes the worker for the due deliveries of a profile. The reconciler repeats lost wake-ups."""

    def notify(self, network: str, profile_id: str) -> None: ...


class NoWakeup:
    """Leaves all deliveries to the reconciler."""

    def notify(self, network: str, profile_id: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class TakenLock:
    """A lock of another process, and when it was seen, on the monotonic clock."""

    file: int | None
    first_seen: float
    last_seen: float


# --- state of one process, outside the database. Times are on the monotonic clock. -----------------------------------


class Engine:
    """What this process remembers about deliveries and about the clocks of networks."""

    NOTED_SECONDS = 10.0
    """The clock of a network is set at most this often."""

    def __init__(self) -> None:
        self._kept_writes: dict[str, Callable[[], Delivery | None]] = {}
        self._read_back_at: dict[str, float] = {}
        self._announced_at: dict[str, float] = {}
        self._clocks: dict[str, tuple[float, float]] = {}
        """By network: its Unix time minus the monotonic clock, and when this was noted."""
        self.backfill_counts: dict[str, int] = {}
        """By delivery: the number of backfill requests of this process."""
        self.retention_steps: Iterator[Callable[..., int]] | None = None
        """The remaining steps of the current round of retention."""
        self.retention_again_at = 0.0

    # A result that the disk did not take is stored by the next claim of the delivery.

    def keep_write(self, delivery_id: str, write: "Callable[[], Delivery | None]") -> None:
        self._kept_writes[delivery_id] = write

    def find_write(self, delivery_id: str) -> "Callable[[], Delivery | None] | None":
        return self._kept_writes.get(delivery_id)

    def end_write(self, delivery_id: str) -> None:
        self._kept_writes.pop(delivery_id, None)

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

    def remembered(self) -> set[str]:
        """Return the deliveries with an announcement or a read-back."""
        return {*self._read_back_at, *self._announced_at}

    def forget(self, delivery_id: str) -> None:
        """Forget a delivery that has ended."""
        self._read_back_at.pop(delivery_id, None)
        self._announced_at.pop(delivery_id, None)

    def set_network_clock(self, provider: str, date: str | None, now: float) -> None:
        """Set the network's clock by the `Date` of a response. `now` is on the monotonic clock."""
        known = self._clocks.get(provider)
        if known is not None and now - known[1] < self.NOTED_SECONDS:
            return
        from socialpub.providers.responses import http_date

        at = http_date(date)
        if at is not None:
            self._clocks[provider] = (at.timestamp() - now, now)

    def network_now(self, provider: str, now: float) -> datetime | None:
        """Return the time at the network. None: it has not responded to this process yet."""
        known = self._clocks.get(provider)
        return None if known is None else datetime.fromtimestamp(known[0] + now, UTC)


AnswerKey = tuple[str, bytes | None, str | None, str]
"""The profile, its sealed token, the time of its account data, and the question."""


@dataclass(slots=True)
class TokenKeeper:
    """The state of accounts."""

    pending_grants: dict[str, tuple[Profile, "Tokens", datetime, bool]] = field(default_factory=dict)
    """By profile: new tokens after a failed write, with the previous profile, the instant of the request, and whether
    the owner requested them."""
    taken_locks: dict[str, TakenLock] = field(default_factory=dict)
    """By profile: the token locks of other processes."""
    answers: dict[AnswerKey, tuple[float, object]] = field(default_factory=dict)
    """The expiry of the answer, and the answer or the error."""
    open_questions: "dict[str, tuple[tuple[object, ...], asyncio.Task[Any]]]" = field(default_factory=dict)
    """By profile: the question that a network has not answered yet, and its task on the event loop."""
    failed_avatars: dict[tuple[str, str | None], float] = field(default_factory=dict)
    """By profile and URL: when the avatar is fetched again."""


@dataclass(slots=True)
class MediaStore:
    """The state of stored media."""

    arriving_bytes: int = 0
    """Bytes of uploads without a row. Only the event loop changes the number."""
    fetching: Counter[str] = field(default_factory=Counter)
    """By API key: its requests that fetch media by URL. Only the event loop changes the numbers."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Taken by each fetch on the event loop before it parses a few lines."""
    walked_bytes: int = 0
    """The last measured size of renditions, thumbnails and avatars."""
    walk_again_at: float = 0.0


@dataclass(slots=True)
class Runtime:
    settings: Settings
    clock: Clock
    db: ApplianceDatabase
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
    media: MediaStore = field(default_factory=MediaStore)
    opened_totals: "Totals | None" = None
    """Of the event loop."""
    opened_http: "Http | None" = None
    """The client for calls to networks, once this process needs one."""

    @property
    def reader(self) -> Database:
        """This thread's read-only connection."""
        return self.db

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
