"""Failed deliveries, as the owner has to see to them. Only read here."""

from dataclasses import dataclass

from socialpub.db.connection import Reader, Row
from socialpub.db.states import State

MAX_COUNTED = 1000
MAX_TEXT = 100


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    id: str
    post_id: str
    profile_id: str
    provider: str
    profile_name: str
    failed_at: str
    unknown: bool
    """It may be public all the same."""
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
    """Both counts together go up to `MOST_COUNTED`: beyond that they are the newest ones."""


_COLUMNS = f"""d.id, d.post_id, d.profile_id, d.provider, d.profile_name, d.failed_at, d.state, d.error_message,
    (SELECT substr(body, 1, {MAX_TEXT}) FROM post WHERE id = d.post_id), d.content_refused"""
_FOUND = """
    FROM delivery d INDEXED BY delivery_failed WHERE d.failed_at IS NOT NULL AND d.failed_at >= ?
        AND NOT EXISTS (SELECT 1 FROM delivery r WHERE r.retry_of = ifnull(d.retry_of, d.id) AND r.id > d.id)
    ORDER BY d.failed_at DESC"""
"""Not what was tried again: the last try counts for all of them."""


def lately(reader: Reader, since: str, most: int) -> FailedDeliveries:
    """What has failed since and was not tried again."""
    counted = reader.all(
        f"SELECT state, count(*) FROM (SELECT d.state {_FOUND} LIMIT {MAX_COUNTED}) GROUP BY state", (since,)
    )
    return _found(reader.all(f"SELECT {_COLUMNS} {_FOUND} LIMIT ?", (since, most)), counted)


_LOGGED = """
    FROM log_entry e INDEXED BY log_entry_rare CROSS JOIN delivery d ON d.id = e.delivery_id
    WHERE e.type IN ('failed', 'canceled') AND e.type = 'failed' AND e.n > ?
        AND d.failed_at >= ? AND d.error_message IS NOT ?
        AND NOT EXISTS (SELECT 1 FROM delivery r WHERE r.retry_of = ifnull(d.retry_of, d.id) AND r.id > d.id)
    ORDER BY e.n DESC"""


def newest_entry(reader: Reader) -> int:
    """The number of the last entry in the log that tells of a failed delivery; 0 where there is none."""
    rare = "type IN ('failed', 'canceled') AND type = 'failed'"  # as the index has it
    return int(reader.value(f"SELECT ifnull(max(n), 0) FROM log_entry INDEXED BY log_entry_rare WHERE {rare}"))


def logged_after(reader: Reader, entry: int, since: str, meant: str, most: int) -> FailedDeliveries:
    """What the log tells after this entry: failed since, was not tried again, and does not say `meant`."""
    params = (entry, since, meant)
    counted = reader.all(
        f"SELECT state, count(*) FROM (SELECT d.state {_LOGGED} LIMIT {MAX_COUNTED}) GROUP BY state", params
    )
    rows = reader.all(f"SELECT {_COLUMNS} {_LOGGED} LIMIT ?", (*params, most))
    return _found(rows, counted)


def _found(rows: list[Row], counted: list[Row]) -> FailedDeliveries:
    counts = {row[0]: row[1] for row in counted}
    return FailedDeliveries(
        [_shown(row) for row in rows], counts.get(State.FAILED, 0), counts.get(State.UNCONFIRMED, 0)
    )


def _shown(row: Row) -> FailedDelivery:
    return FailedDelivery(
        row[0], row[1], row[2], row[3], row[4], row[5], row[6] == State.UNCONFIRMED, row[7] or "", row[8], bool(row[9])
    )
