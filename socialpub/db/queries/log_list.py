"""The delivery log for the owner: filtered, newest first, page by page.

A page begins below the number of the previous page's last entry, so new entries do not change a page, and a deep page
takes no more time than the first page. Failed and canceled entries and messages have an index. Time has no index: the
numbers are in the order of time, so a bisection finds the numbers of a time filter. After the clock was set back, the
numbers are out of order by a known time (`log_entries.LogOrder`), and the bisection allows for it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from peewee import JOIN, SQL, ColumnBase, Join, ModelSelect, Select, fn

from socialpub.core.clock import after
from socialpub.db.connection import Database
from socialpub.db.models import DeliveryRow, LogEntryRow, PostRow, ProfileRow
from socialpub.db.queries import text_search
from socialpub.db.states import State
from socialpub.db.tables import log_entries
from socialpub.db.tables.log_entries import POST_OF_ENTRY, TEXT

MAX_TEXT = 100
TYPES = ("pending", "published", "failed", "canceled")


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The filter of a page. None: any value. `since` (inclusive) and `until` (exclusive) are stamps."""

    provider: str | None = None
    profile_id: str | None = None
    type: str | None = None
    """One of `TYPES`."""
    only_outcomes: bool = False
    """Leave out the entries about accepted deliveries."""
    since: str | None = None
    until: str | None = None
    error: str | None = None
    """A part of the error message, in any case."""
    below: int | None = None
    """The number of the previous page's last entry."""
    per_page: int = 50

    @property
    def is_slow(self) -> bool:
        """Whether the query may take too long for the event loop."""
        return any((self.provider, self.type, self.only_outcomes, self.since, self.until, self.error))


class LogEntry(NamedTuple):
    number: int
    occurred_at: str
    type: str
    provider: str
    profile_id: str
    profile_name: str | None
    post_id: str
    delivery_id: str
    text: str | None
    """The first 100 characters of the post's text."""
    scheduled_at: str | None
    url: str | None
    provider_post_id: str | None
    error: str | None
    mode: str | None
    """The option `mode`. None: the delivery has no such option or was removed."""


class LogPage(NamedTuple):
    entries: list[LogEntry]
    below: int | None
    """The start of the next page. None: this is the last page."""


entry, delivery = LogEntryRow.alias("log_entry"), DeliveryRow.alias("d")
_IS_RARE = SQL("log_entry.type IN ('failed', 'canceled')")
"""The condition of an index. SQLite uses the index only with its exact condition."""


def _entries(index: str = "") -> "ModelSelect[LogEntryRow]":
    entries = entry.select(
        entry.n,
        entry.occurred_at,
        entry.type,
        entry.provider,
        entry.profile_id,
        entry.profile_name,
        entry.post_id,
        entry.delivery_id,
        fn.substr(SQL(TEXT), 1, MAX_TEXT),
        entry.post_scheduled_at,
        entry.release_url,
        entry.provider_post_id,
        entry.error_message,
        delivery.select(fn.json_extract(delivery.options, "$.mode")).where(delivery.id == entry.delivery_id),
    )
    return entries.from_(SQL(f"log_entry {index} {POST_OF_ENTRY}")).order_by(entry.n.desc())


def numbers_of_profiles(
    profiles: Sequence[ColumnBase], numbers: "ModelSelect[LogEntryRow]"
) -> "ModelSelect[ProfileRow]":
    """Return the query for these numbers of log entries of each of these profiles, from the index of the profile.

    The few entries of a profile may be far behind other entries. In SQLite, only a function may depend on the profile
    in `FROM`, so each profile's numbers are a JSON array.
    """
    own = numbers.from_(SQL("log_entry INDEXED BY log_entry_of_profile")).where(entry.profile_id == SQL("profile.id"))
    array = Select([own], [fn.json_group_array(SQL("n"))])
    source = Join(SQL("profile"), fn.json_each(array).alias("e"), JOIN.CROSS)
    return ProfileRow.alias("profile").select(SQL("e.value")).from_(source).where(*profiles)


def load_page(db: Database, query: LogFilter) -> LogPage:
    with db.atomic():
        first, end = _numbers_of_time(db, query.since, query.until)
        conditions = [
            condition
            for value, condition in (
                (query.only_outcomes or None, entry.type != "pending"),
                (query.provider, entry.provider == query.provider),
                (query.profile_id, entry.profile_id == query.profile_id),
                (query.type, entry.type == query.type),
                (query.since, entry.occurred_at >= query.since),
                (query.until, entry.occurred_at < query.until),
                (query.below, entry.n < query.below),
                (first, entry.n >= first),
                (end, entry.n < end),
            )
            if value is not None
        ]
        index = ""
        if query.error:
            index = "INDEXED BY log_entry_message"
            conditions += [entry.error_message.is_null(False), text_search.contains(entry.error_message, query.error)]
        elif query.type in ("failed", "canceled"):
            index = "INDEXED BY log_entry_rare"
            conditions.append(_IS_RARE)
        elif query.provider and not query.profile_id:
            profiles = [ProfileRow.alias("profile").provider == query.provider]
            newest = entry.select(entry.n).order_by(entry.n.desc()).limit(query.per_page + 1)
            conditions = [entry.n.in_(numbers_of_profiles(profiles, newest.where(*conditions or [SQL("1")])))]
        page = _entries(index).where(*conditions or [SQL("1")]).limit(query.per_page + 1)
        rows = list(page.tuples().execute(db))
    entries = [LogEntry(*row) for row in rows[: query.per_page]]
    return LogPage(entries, entries[-1].number if len(rows) > query.per_page else None)


def _numbers_of_time(db: Database, since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return the first number and the end of a range that leaves out no entry of this time."""
    behind = log_entries.load_order(db).behind
    if behind:
        behind += 1.0
        # `after` returns the last instant if there is none. The time filter itself is safe then.
        since = None if since is None else min(since, after(since, -behind))
        until = None if until is None else after(until, behind)
    return None if since is None else _first_number(db, since), None if until is None else _first_number(db, until)


def _first_number(db: Database, at: str) -> int:
    """Return a number: the entry before it is earlier than `at`, and the entry at it or after it is not.

    All entries before the number are at most `LogOrder.behind` later than the first of both, and all others at most as
    much earlier than the second. This runs a statement 20 times, which takes 2 to 4 ms.
    """
    low, high = 0, log_entries.newest_number(db) + 1
    while low < high:
        middle = (low + high) // 2
        following = entry.select(entry.n, entry.occurred_at).where(entry.n >= middle).order_by(entry.n).first(db)
        if following is None or following.occurred_at >= at:
            high = middle
        else:
            low = following.n + 1
    return low


_NEWEST_READ = 5000
"""The search for publications reads only this number of the newest entries."""


def published(
    db: Database, limit: int, providers: Collection[str] | None = None, since: str | None = None
) -> list[LogEntry]:
    """Return the last published deliveries to these networks since this stamp, newest first."""
    newest = LogEntryRow.select(fn.MAX(LogEntryRow.n) - _NEWEST_READ)
    entries = _entries().where(entry.n > newest, entry.type == "published")
    if providers is not None:
        entries = entries.where(entry.provider.in_(list(providers)))
    if since is not None:
        entries = entries.where(entry.occurred_at >= since)
    return [LogEntry(*row) for row in entries.limit(limit).tuples().execute(db)]


# --- failed deliveries, for alerts -----------------------------------------------------------------------------------

MAX_FAILURES = 1000


class FailedDelivery(NamedTuple):
    id: str
    post_id: str
    profile_id: str
    provider: str
    profile_name: str
    failed_at: str
    unknown: bool
    """Whether the outcome is unknown, so the post may be public."""
    error: str
    text: str | None
    """The first 100 characters of the post."""
    content_refused: bool
    """Whether the network rejected the content of the post."""


class FailedDeliveries(NamedTuple):
    newest: list[FailedDelivery]
    failed: int
    unknown: int
    """The counts include at most the newest `MAX_FAILURES`."""


_IS_FAILURE = _IS_RARE & (entry.type == "failed")


def recent_failures(db: Database, since: str, limit: int) -> FailedDeliveries:
    """Return the deliveries that failed since this instant and were neither retried nor stopped."""
    failed = delivery.select().from_(SQL("delivery d INDEXED BY delivery_failed")).order_by(delivery.failed_at.desc())
    return _failures(db, failed, since, limit)


def newest_failure(db: Database) -> int:
    """Return the number of the log's last entry about a failed delivery, or 0."""
    newest = entry.select(fn.MAX(entry.n)).from_(SQL("log_entry INDEXED BY log_entry_rare")).where(_IS_FAILURE)
    return newest.scalar(db) or 0


def failures_after(db: Database, number: int, since: str, limit: int) -> FailedDeliveries:
    """Return the failures after this log entry that were neither retried nor stopped."""
    entries = SQL("log_entry INDEXED BY log_entry_rare CROSS JOIN delivery d ON d.id = log_entry.delivery_id")
    failed = delivery.select().from_(entries).where(_IS_FAILURE, entry.n > number).order_by(entry.n.desc())
    return _failures(db, failed, since, limit)


def _failures(db: Database, failed: "ModelSelect[DeliveryRow]", since: str, limit: int) -> FailedDeliveries:
    later = DeliveryRow.alias("later")
    first = fn.IFNULL(delivery.retry_of, delivery.id)
    is_retried = fn.EXISTS(later.select(SQL("1")).where(later.retry_of == first, later.id > delivery.id))
    is_stopped = (delivery.state == State.FAILED) & fn.json_extract(delivery.progress, "$.stopped").is_null(False)
    failed = failed.where(delivery.failed_at >= since, ~is_stopped, ~is_retried)
    states = failed.select(delivery.state).limit(MAX_FAILURES).alias("states")
    per_state = Select([states], [states.c.state, fn.COUNT(SQL("*"))]).group_by(states.c.state)
    counts: dict[str, int] = dict(per_state.tuples().execute(db))
    newest = failed.select(
        delivery.id,
        delivery.post_id,
        delivery.profile_id,
        delivery.provider,
        delivery.profile_name,
        delivery.failed_at,
        delivery.state == State.UNCONFIRMED,
        fn.IFNULL(delivery.error_message, ""),
        PostRow.select(fn.substr(PostRow.body, 1, MAX_TEXT)).where(PostRow.id == delivery.post_id),
        delivery.content_refused,
    )
    rows = [FailedDelivery(*row) for row in newest.limit(limit).tuples().execute(db)]
    return FailedDeliveries(rows, counts.get(State.FAILED, 0), counts.get(State.UNCONFIRMED, 0))
