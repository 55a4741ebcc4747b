"""The delivery log for the owner: filtered, newest first, page by page.

A page begins below the number of the previous page's last entry, so new entries do not change a page, and a deep page
takes no more time than the first page. Failed and canceled entries and messages have an index. Time has no index: the
numbers are in the order of time, so a bisection finds the numbers of a time filter. After the clock was set back, the
numbers are out of order by a known time (`log_entries.LogOrder`), and the bisection allows for it.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

from socialpub.core.clock import after
from socialpub.db.connection import Database, Value
from socialpub.db.queries import text_search
from socialpub.db.states import State
from socialpub.db.tables import log_entries
from socialpub.db.tables.log_entries import ENTRIES, POST_OF_ENTRY, TEXT

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

    @property
    def of_network_alone(self) -> bool:
        """Whether the newest entries of the network's profiles match, because no other filter excludes many entries."""
        return bool(self.provider) and not self.profile_id


@dataclass(frozen=True, slots=True)
class LogEntry:
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


_RARE = ("failed", "canceled")
_IS_RARE, _HAS_MESSAGE = "type IN ('failed', 'canceled')", "error_message IS NOT NULL"
"""The conditions of the indexes. SQLite uses an index only with its exact condition."""
_OF_NETWORK = """n IN (SELECT e.n FROM profile CROSS JOIN log_entry e ON e.n IN (
        SELECT n FROM log_entry INDEXED BY log_entry_of_profile WHERE profile_id = profile.id AND {}
        ORDER BY n DESC LIMIT ?)
    WHERE profile.provider = ?)"""
"""The newest entries of each profile: the few entries of a network may be far behind other entries."""
_SHORT = 100
"""For a longer page, such as a part of an export, a scan of all entries is faster."""

_COLUMNS = f"""n, occurred_at, type, provider, profile_id, profile_name, post_id, delivery_id,
    substr({TEXT}, 1, {MAX_TEXT}), post_scheduled_at, release_url, provider_post_id, error_message,
    (SELECT json_extract(options, '$.mode') FROM delivery WHERE delivery.id = delivery_id)"""


@dataclass(frozen=True, slots=True)
class LogPage:
    entries: list[LogEntry]
    below: int | None
    """The start of the next page. None: this is the last page."""


def load_page(reader: Database, query: LogFilter) -> LogPage:
    with reader.atomic():
        return _load_page(reader, query)


def _load_page(reader: Database, query: LogFilter) -> LogPage:
    conditions, params = ["type <> 'pending'" if query.only_outcomes else "1"], list[Value]()
    for condition, value in (
        ("provider = ?", query.provider),
        ("profile_id = ?", query.profile_id),
        ("type = ?", query.type),
        ("occurred_at >= ?", query.since),
        ("occurred_at < ?", query.until),
        ("n < ?", query.below),
        *_borders(reader, query.since, query.until),
    ):
        if value is not None:
            conditions.append(condition)
            params.append(value)
    source = "log_entry"
    if query.error:
        source = "log_entry INDEXED BY log_entry_message"
        conditions.append(_HAS_MESSAGE)
        holding, patterns = text_search.contains("error_message", query.error)
        conditions.append(f"({holding})")
        params += patterns
    elif query.type in _RARE:
        source = "log_entry INDEXED BY log_entry_rare"
        conditions.append(_IS_RARE)
    elif query.of_network_alone and query.per_page <= _SHORT:
        where = " AND ".join(conditions)
        conditions = [_OF_NETWORK.format(where)]
        params = [*params, query.per_page + 1, query.provider]
    where = " AND ".join(conditions)
    rows = reader.all(
        f"SELECT {_COLUMNS} FROM {source} {POST_OF_ENTRY} WHERE {where} ORDER BY n DESC LIMIT ?",
        [*params, query.per_page + 1],
    )
    entries = [LogEntry(*row) for row in rows[: query.per_page]]
    return LogPage(entries, entries[-1].number if len(rows) > query.per_page else None)


def _borders(reader: Database, since: str | None, until: str | None) -> list[tuple[str, int | None]]:
    """Return conditions on the numbers that leave out entries outside of the time only, and no entry inside."""
    behind = log_entries.load_order(reader).behind
    if behind:
        behind += 1.0
        # `after` returns the last instant if there is none. The time filter itself is safe then.
        since = None if since is None else min(since, after(since, -behind))
        until = None if until is None else after(until, behind)
    return [
        ("n >= ?", None if since is None else _first_number(reader, since)),
        ("n < ?", None if until is None else _first_number(reader, until)),
    ]


def _first_number(reader: Database, at: str) -> int:
    """Return a number: the entry before it is earlier than `at`, and the entry at it or after it is not.

    All entries before the number are at most `LogOrder.behind` later than the first of both, and all others at most as
    much earlier than the second.
    """
    low, high = 0, int(reader.value("SELECT ifnull(max(n), 0) FROM log_entry")) + 1
    while low < high:
        middle = (low + high) // 2
        row = reader.one("SELECT n, occurred_at FROM log_entry WHERE n >= ? ORDER BY n LIMIT 1", (middle,))
        if row is None or row.occurred_at >= at:
            high = middle
        else:
            low = row.n + 1
    return low


_NEWEST_READ = 5000
"""The search for publications reads only this number of the newest entries."""


def published(
    reader: Database, limit: int, providers: Collection[str] | None = None, since: str | None = None
) -> list[LogEntry]:
    """Return the last published deliveries to these networks since this stamp, newest first."""
    conditions, params = "type = 'published'", list[Value]()
    if providers is not None:
        conditions += " AND provider IN (SELECT value FROM json_each(?))"
        params.append(json.dumps(list(providers)))
    if since is not None:
        conditions += " AND occurred_at >= ?"
        params.append(since)
    rows = reader.all(
        f"""SELECT {_COLUMNS} FROM {ENTRIES} WHERE n > (SELECT max(n) FROM log_entry) - {_NEWEST_READ}
            AND {conditions} ORDER BY n DESC LIMIT ?""",
        [*params, limit],
    )
    return [LogEntry(*row) for row in rows]


# --- failed deliveries, for alerts -----------------------------------------------------------------------------------

MAX_FAILURES = 1000


@dataclass(frozen=True, slots=True)
class FailedDelivery:
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


@dataclass(frozen=True, slots=True)
class FailedDeliveries:
    newest: list[FailedDelivery]
    failed: int
    unknown: int
    """The counts include at most the newest `MAX_FAILURES`."""


_FAILED_COLUMNS = f"""d.id, d.post_id, d.profile_id, d.provider, d.profile_name, d.failed_at, d.state = 'unconfirmed',
    ifnull(d.error_message, ''), (SELECT substr(body, 1, {MAX_TEXT}) FROM post WHERE id = d.post_id),
    d.content_refused"""
_NOT_RETRIED = "NOT EXISTS (SELECT 1 FROM delivery r WHERE r.retry_of = ifnull(d.retry_of, d.id) AND r.id > d.id)"
"""Only the last try of a delivery counts."""
_IS_FAILURE = "type IN ('failed', 'canceled') AND type = 'failed'"
"""With the exact condition of the index."""


def recent_failures(reader: Database, since: str, meant: str, limit: int) -> FailedDeliveries:
    """Return the deliveries that failed since this instant, were not retried and do not have the message `meant`."""
    found = f"""FROM delivery d INDEXED BY delivery_failed WHERE d.failed_at IS NOT NULL AND d.failed_at >= ?
        AND d.error_message IS NOT ? AND {_NOT_RETRIED} ORDER BY d.failed_at DESC"""
    return _failures(reader, found, (since, meant), limit)


def newest_failure(reader: Database) -> int:
    """Return the number of the log's last entry about a failed delivery, or 0."""
    return int(reader.value(f"SELECT ifnull(max(n), 0) FROM log_entry INDEXED BY log_entry_rare WHERE {_IS_FAILURE}"))


def failures_after(reader: Database, entry: int, since: str, meant: str, limit: int) -> FailedDeliveries:
    """Return the failures after this log entry that were not retried and do not have the message `meant`."""
    found = f"""FROM log_entry e INDEXED BY log_entry_rare CROSS JOIN delivery d ON d.id = e.delivery_id
        WHERE {_IS_FAILURE.replace("type", "e.type")} AND e.n > ? AND d.failed_at >= ? AND d.error_message IS NOT ?
        AND {_NOT_RETRIED} ORDER BY e.n DESC"""
    return _failures(reader, found, (entry, since, meant), limit)


def _failures(reader: Database, found: str, params: tuple[Value, ...], limit: int) -> FailedDeliveries:
    counted = f"SELECT state, count(*) FROM (SELECT d.state {found} LIMIT {MAX_FAILURES}) GROUP BY state"
    counts = {row[0]: row[1] for row in reader.all(counted, params)}
    newest = reader.all(f"SELECT {_FAILED_COLUMNS} {found} LIMIT ?", (*params, limit))
    return FailedDeliveries(
        [FailedDelivery(*row) for row in newest], counts.get(State.FAILED, 0), counts.get(State.UNCONFIRMED, 0)
    )
