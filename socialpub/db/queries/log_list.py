"""The delivery history as its owner reads it: filtered, newest first, page by page.

A page begins below the number of the last entry before it: what is added meanwhile moves nothing, and a deep page costs
no more than the first. What is rare has an index: entries that failed or were canceled, and messages. Entries are in
the order of their time, and no index knows that time: a window of it is looked for among all of them.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

from socialpub.db.connection import Reader, Row, Value
from socialpub.db.queries import text_search

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


def read(reader: Reader, query: LogFilter) -> LogPage:
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
        holding, patterns = text_search.condition("error_message", query.error)
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
    entries = [_entry(row) for row in rows[: query.per_page]]
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
    return [_entry(row) for row in rows]


def _entry(row: Row) -> LogEntry:
    return LogEntry(*tuple(row))
