"""The delivery history as CSV, in slices. A cell that begins like a formula gets an apostrophe."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import LogEntry, LogFilter
from socialpub.runtime import Runtime

SLICE = 500
COLUMNS = {
    "time": "occurred_at",
    "type": "type",
    "network": "provider",
    "profile": "profile_name",
    "text": "text",
    "scheduled": "scheduled_at",
    "url": "url",
    "error": "error",
    "post id": "post_id",
    "delivery id": "delivery_id",
    "profile id": "profile_id",
    "network's post id": "provider_post_id",
}
"""The name of each column, and the field of a log entry."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets treat the wide characters of East Asian keyboards the same."""


def export_csv(rt: Runtime, query: LogFilter) -> Iterator[bytes]:
    """Yield CSV (RFC 4180, UTF-8): a line of names, then each entry that matches the filter, newest first.

    The thread that requests a slice reads it. No transaction stays open between slices.
    """
    yield _lines([list(COLUMNS)])
    below: int | None = query.below
    while True:
        page = log_list.load_page(rt.db, replace(query, below=below, per_page=SLICE))
        if page.entries:
            yield _lines(_cells(entry) for entry in page.entries)
        below = page.below
        if below is None:
            return


def _lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cells(entry: LogEntry) -> tuple[str, ...]:
    cells = [getattr(entry, field) for field in COLUMNS.values()]
    return tuple(f"'{cell}" if cell and cell.startswith(_FORMULA) else cell or "" for cell in cells)
