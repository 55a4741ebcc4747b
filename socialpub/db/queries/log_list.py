"""The delivery history as its owner reads it: filtered, newest first, page by page.

A page begins below the number of the last entry before it: what is added meanwhile moves nothing, and a deep page costs
no more than the first. What is rare has an index: entries that failed or were canceled, and messages. Entries are in
the order of their time, and no index knows that time: a window of it is looked for among all of them.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

from socialpub.db.connection import Reader, Value
from socialpub.db.queries import post_list
from socialpub.db.states import State

MAX_TEXT = 100
TYPES = ("pending", "published", "failed", "canceled")


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which entries, newest first; None is any. `since` (inclusive) and `until` (exclusive) are stamps."""

    provider: str | None = None
    profile_id: str | None = None
    type: str | None = None
    """One of `TYPES`."""
    only_outcomes: bool = False
    """Leave out that a delivery was accepted."""
    since: str | None = None
    until: str | None = None
    error: str | None = None
    """What the error message must hold, capitals or not."""
    below: int | None = None
    """The number of the last entry of the page before."""
    per_page: int = 50

    @property
    def long(self) -> bool:
        """Whether answering may take more than a moment: then it belongs off the event loop."""
        return any((self.provider, self.type, self.only_outcomes, self.since, self.until, self.error))

    @property
    def of_network_alone(self) -> bool:
        """Whether the newest entries of its profiles are the ones: nothing else keeps many of them out."""
        return bool(self.provider) and not (self.profile_id or self.since or self.until)


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
    """The option `mode` of the delivery, as long as the delivery is stored."""


_RARE = ("failed", "canceled")
_IS_RARE, _HAS_MESSAGE = "type IN ('failed', 'canceled')", "error_message IS NOT NULL"
"""As the indexes of these entries say it: only so are they used."""
_OF_NETWORK = """n IN (SELECT e.n FROM profile CROSS JOIN log_entry e ON e.n IN (
        SELECT n FROM log_entry INDEXED BY log_entry_of_profile WHERE profile_id = profile.id AND {}
        ORDER BY n DESC LIMIT ?)
    WHERE profile.provider = ?)"""
"""The newest of each profile: where a network's entries are few, the newest of them may lie far behind others."""
_SHORT = 100
"""A longer page, such as the parts that a file is read in, costs less by going through all entries."""

_COLUMNS = f"""n, occurred_at, type, provider, profile_id, profile_name, post_id, delivery_id,
    substr(post_body, 1, {MAX_TEXT}), post_scheduled_at, release_url, provider_post_id, error_message,
    (SELECT json_extract(options, '$.mode') FROM delivery WHERE delivery.id = delivery_id)"""


@dataclass(frozen=True, slots=True)
class LogPage:
    entries: list[LogEntry]
    below: int | None
    """Where the next page begins; None when this is the last one."""


def load_page(reader: Reader, query: LogFilter) -> LogPage:
    """One page."""
    conditions, params = ["type <> 'pending'" if query.only_outcomes else "1"], list[Value]()
    for condition, value in (
        ("provider = ?", query.provider),
        ("profile_id = ?", query.profile_id),
        ("type = ?", query.type),
        ("occurred_at >= ?", query.since),
        ("occurred_at < ?", query.until),
        ("n < ?", query.below),
    ):
        if value is not None:
            conditions.append(condition)
            params.append(value)
    if query.error:
        conditions.append(_HAS_MESSAGE)
        holding, patterns = post_list.contains("error_message", query.error)
        conditions.append(f"({holding})")
        params += patterns
    elif query.type in _RARE:
        conditions.append(_IS_RARE)
    elif query.of_network_alone and query.per_page <= _SHORT:
        where = " AND ".join(conditions)
        conditions = [_OF_NETWORK.format(where)]
        params = [*params, query.per_page + 1, query.provider]
    where = " AND ".join(conditions)
    rows = reader.all(
        f"SELECT {_COLUMNS} FROM log_entry WHERE {where} ORDER BY n DESC LIMIT ?", [*params, query.per_page + 1]
    )
    entries = [LogEntry(*row) for row in rows[: query.per_page]]
    return LogPage(entries, entries[-1].number if len(rows) > query.per_page else None)


_NEWEST_READ = 5000
"""The search for publications reads this number of the newest entries. A burst of new posts can precede them."""


def published(
    reader: Reader, most: int, providers: Collection[str] | None = None, since: str | None = None
) -> list[LogEntry]:
    """Return the last deliveries that were published, newest first: to these networks, since this stamp."""
    conditions, params = "type = 'published'", list[Value]()
    if providers is not None:
        conditions += " AND provider IN (SELECT value FROM json_each(?))"
        params.append(json.dumps(list(providers)))
    if since is not None:
        conditions += " AND occurred_at >= ?"
        params.append(since)
    rows = reader.all(
        f"""SELECT {_COLUMNS} FROM log_entry WHERE n > (SELECT max(n) FROM log_entry) - {_NEWEST_READ}
            AND {conditions} ORDER BY n DESC LIMIT ?""",
        [*params, most],
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
    """The outcome is unknown: it may be public."""
    error: str
    text: str | None
    """The first 100 characters of its post."""
    content_refused: bool
    """Whether the post itself was refused."""


@dataclass(frozen=True, slots=True)
class FailedDeliveries:
    newest: list[FailedDelivery]
    failed: int
    unknown: int
    """Both counts together go up to `MAX_FAILURES`: beyond that they are the newest ones."""


_FAILED_COLUMNS = f"""d.id, d.post_id, d.profile_id, d.provider, d.profile_name, d.failed_at, d.state = 'unconfirmed',
    ifnull(d.error_message, ''), (SELECT substr(body, 1, {MAX_TEXT}) FROM post WHERE id = d.post_id),
    d.content_refused"""
_NOT_RETRIED = "NOT EXISTS (SELECT 1 FROM delivery r WHERE r.retry_of = ifnull(d.retry_of, d.id) AND r.id > d.id)"
"""The last try counts for all of them."""
_IS_FAILURE = "type IN ('failed', 'canceled') AND type = 'failed'"
"""As the index of rare entries says it."""


def recent_failures(reader: Reader, since: str, most: int) -> FailedDeliveries:
    """Return what has failed since and was not tried again."""
    found = f"""FROM delivery d INDEXED BY delivery_failed WHERE d.failed_at IS NOT NULL AND d.failed_at >= ?
        AND {_NOT_RETRIED} ORDER BY d.failed_at DESC"""
    return _failures(reader, found, (since,), most)


def newest_failure(reader: Reader) -> int:
    """Return the number of the log's last entry about a failed delivery, or 0."""
    return int(reader.value(f"SELECT ifnull(max(n), 0) FROM log_entry INDEXED BY log_entry_rare WHERE {_IS_FAILURE}"))


def failures_after(reader: Reader, entry: int, since: str, meant: str, most: int) -> FailedDeliveries:
    """Return what the log reports after this entry: failed since, was not tried again, and does not say `meant`."""
    found = f"""FROM log_entry e INDEXED BY log_entry_rare CROSS JOIN delivery d ON d.id = e.delivery_id
        WHERE {_IS_FAILURE.replace("type", "e.type")} AND e.n > ? AND d.failed_at >= ? AND d.error_message IS NOT ?
        AND {_NOT_RETRIED} ORDER BY e.n DESC"""
    return _failures(reader, found, (entry, since, meant), most)


def _failures(reader: Reader, found: str, params: tuple[Value, ...], most: int) -> FailedDeliveries:
    counted = f"SELECT state, count(*) FROM (SELECT d.state {found} LIMIT {MAX_FAILURES}) GROUP BY state"
    counts = {row[0]: row[1] for row in reader.all(counted, params)}
    newest = reader.all(f"SELECT {_FAILED_COLUMNS} {found} LIMIT ?", (*params, most))
    return FailedDeliveries(
        [FailedDelivery(*row) for row in newest], counts.get(State.FAILED, 0), counts.get(State.UNCONFIRMED, 0)
    )
