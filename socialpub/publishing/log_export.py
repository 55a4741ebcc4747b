"""The delivery history as a table for a spreadsheet, piece by piece: however long it is, a slice of it is in memory.

What begins a cell like a formula gets an apostrophe before it: texts and messages are other people's.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import LogEntry, LogFilter
from socialpub.runtime import Runtime

SLICE = 500
COLUMNS = (
    "time",
    "type",
    "network",
    "profile",
    "text",
    "scheduled",
    "url",
    "error",
    "post id",
    "delivery id",
    "profile id",
    "network's post id",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets take the wide ones of East Asian keyboards for the same."""


def pieces(rt: Runtime, query: LogFilter) -> Iterator[bytes]:
    """CSV (RFC 4180, UTF-8) with a first line of names, then every entry that the filter lets through, newest first.

    Each piece is read when it is asked for, by the thread that asks (`asyncio.to_thread(next, pieces, None)`), and no
    transaction stays open in between. What is written meanwhile is not in it.
    """
    yield _lines([COLUMNS])
    below: int | None = query.below
    while True:
        page = log_list.load_page(rt.reader, replace(query, below=below, per_page=SLICE))
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
    cells = (
        entry.occurred_at,
        entry.type,
        entry.provider,
        entry.profile_name,
        entry.text,
        entry.scheduled_at,
        entry.url,
        entry.error,
        entry.post_id,
        entry.delivery_id,
        entry.profile_id,
        entry.provider_post_id,
    )
    return tuple(f"'{cell}" if cell and cell.startswith(_FORMULA) else cell or "" for cell in cells)
