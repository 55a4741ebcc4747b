"""What the address of `/log` and `/log.csv` asks for: `?network=x&type=failed&from=2026-11-01`.

Without a type the page shows outcomes, and the file holds every entry.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import urlencode

from socialpub.accounts import profiles
from socialpub.core.clock import stamp
from socialpub.core.errors import InvalidRequest
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import TYPES, LogFilter
from socialpub.db.tables import audit_log as audit_log_tables
from socialpub.db.tables.audit_log import AuditEntry
from socialpub.ops import audit_text
from socialpub.providers.registry import LABELS
from socialpub.publishing import log_export
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.http.answer import Answer

ALL = "all"
"""The type of every entry."""
FILTER_NAMES = ("network", "profile", "type", "from", "to", "search")
PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class ShownFilter:
    """`shown` is what stands in the form, `errors` what is wrong with it, both by the fields' names. What is wrong is
    left out of `query`."""

    query: LogFilter
    shown: dict[str, str]
    errors: dict[str, str]

    @property
    def any(self) -> bool:
        return any(self.shown.values())

    def address(self, path: str, **more: object) -> str:
        """This filter at another path."""
        values = {name: value for name, value in self.shown.items() if value} | more
        return f"{path}?{urlencode(values)}" if values else path


def read_filter(
    form: Form, zone: tzinfo, networks: Collection[str], profiles: Collection[str], *, whole: bool
) -> ShownFilter:
    """Days are those of the browser's zone. `whole`: without a type, every entry is meant."""
    shown = {name: form.text(name).strip() for name in FILTER_NAMES}
    errors = {}
    for name, known in (("network", networks), ("profile", profiles), ("type", (*TYPES, ALL))):
        if shown[name] and shown[name] not in known:
            errors[name] = "Choose one of the list."
    since, until = times.of_date(shown["from"], zone), times.of_date(shown["to"], zone, end=True)
    for name, found in (("from", since), ("to", until)):
        if shown[name] and found is None:
            errors[name] = "This is no date, such as 2026-11-30."
    given = {name: value for name, value in shown.items() if value and name not in errors}
    query = LogFilter(
        given.get("network"),
        given.get("profile"),
        None if given.get("type") == ALL else given.get("type"),
        not whole and "type" not in given,
        None if since is None else stamp(since),
        None if until is None else stamp(until),
        given.get("search"),
        form.number("below", most_digits=15),
        PER_PAGE,
    )
    return ShownFilter(query, shown, errors)


# MERGED from web/dashboard/log.py: `/log` and `/log.csv`: what became of deliveries, as a page and as a file for a


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """The history, newest first: outcomes, unless the address asks for more."""
    rows = profiles.list_all(rt.reader)
    wanted = _wanted(visit, {row.id for row in rows}, whole=False)
    query = wanted.query
    found = await rt.read_aside(lambda reader: log_list.read(reader, query)) if query.long else None
    return visit.show(
        "log.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter was left out: see below." if wanted.errors else None,
        found=found or log_list.read(rt.reader, query),
        wanted=wanted,
        profiles=rows,
        names=labels.profile_names(rows, network_is_shown=True),
        labels=LABELS,
        types=log_list.TYPES,
        words=labels,
    )


@page()
async def download(rt: Runtime, visit: Visit) -> Answer | None:
    """The same entries, all of them, as CSV."""
    wanted = _wanted(visit, {row.id for row in profiles.list_all(rt.reader)}, whole=True)
    for name, reason in wanted.errors.items():
        raise InvalidRequest.at(message=f"The filter “{name}” cannot be used. {reason}")
    pieces = log_export.pieces(rt, wanted.query)
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
    return read_filter(visit.query, visit.zone, LABELS, profile_ids, whole=whole)


# MERGED from web/dashboard/trail.py: `/trail`: what owners and commands did, when and from where.

AUDIT_PER_PAGE = 50
AUDIT_LABELS = {
    "key": "Keys",
    "profile": "Profiles",
    "publishing": "Pause and resume",
    "copy": "Backups",
    "secret": "secret.key",
    "notify": "Notifications",
    "password": "Password",
    "session": "Sign-ins",
    "post": "Posts",
}
_SUBJECT_PAGES = {"post": "/posts/", "profile": "/profiles/"}


@page()
async def audit_log(rt: Runtime, visit: Visit) -> Answer:
    """A page of it, newest first."""
    kind = visit.query.text("kind") if visit.query.text("kind") in audit_log_tables.KINDS else ""
    at = visit.query.number("page") or 0
    kinds = (kind,) if kind else ()
    found = await rt.read_aside(lambda reader: audit_log_tables.read(reader, kinds, at, AUDIT_PER_PAGE))
    return visit.show(
        "trail.html",
        found=found,
        kind=kind,
        kinds={name: AUDIT_LABELS.get(name, name) for name in audit_log_tables.KINDS},
        at=at,
        per_page=AUDIT_PER_PAGE,
        address=lambda page: visit.href("/trail") + f"?page={page}" + (f"&kind={kind}" if kind else ""),
        who=audit_text.describe_actor,
        what=lambda entry: audit_text.describe(audit_text.with_times(entry, visit.written)),
        place=_subject_page,
    )


def _subject_page(entry: AuditEntry) -> str | None:
    """The page of what it was done to."""
    folder = _SUBJECT_PAGES.get(entry.action.partition(".")[0])
    return f"{folder}{entry.subject_id}" if folder and entry.subject_id else None
