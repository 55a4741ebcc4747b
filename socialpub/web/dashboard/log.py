"""`/log` and `/log.csv`: what became of deliveries, as a page and as a file for a spreadsheet."""

import asyncio

from socialpub.accounts import profiles
from socialpub.core.errors import InvalidRequest
from socialpub.db import log_lists
from socialpub.providers.registry import LABELS
from socialpub.publishing import log_csv
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import log_filters, post_words
from socialpub.web.dashboard.log_filters import ShownFilter
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """The history, newest first: outcomes, unless the address asks for more."""
    rows = profiles.list_all(rt.reader)
    wanted = _wanted(visit, {row["id"] for row in rows}, whole=False)
    query = wanted.query
    found = await rt.read_aside(lambda reader: log_lists.read(reader, query)) if query.long else None
    return visit.show(
        "log.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter was left out: see below." if wanted.errors else None,
        found=found or log_lists.read(rt.reader, query),
        wanted=wanted,
        profiles=rows,
        names=post_words.profile_names(rows, network_is_shown=True),
        labels=LABELS,
        types=log_lists.TYPES,
        words=post_words,
    )


@page()
async def download(rt: Runtime, visit: Visit) -> Answer | None:
    """The same entries, all of them, as CSV."""
    wanted = _wanted(visit, {row["id"] for row in profiles.list_all(rt.reader)}, whole=True)
    for name, reason in wanted.errors.items():
        raise InvalidRequest.at(message=f"The filter “{name}” cannot be used. {reason}")
    pieces = log_csv.pieces(rt, wanted.query)
    name = f"socialpub-log-{visit.now.astimezone(visit.zone):%Y-%m-%d}.csv"
    headers = (
        (b"content-type", b"text/csv; charset=utf-8; header=present"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    )
    # Its length is known when it has been read: until then it goes out in chunks.
    await visit.request.start(200, (*visit.headers, *headers))
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        await visit.request.send(piece, more=True)
    await visit.request.send(b"", more=False)
    return None


def _wanted(visit: Visit, profile_ids: set[str], *, whole: bool) -> ShownFilter:
    return log_filters.read(visit.query, visit.zone, LABELS, profile_ids, whole=whole)
