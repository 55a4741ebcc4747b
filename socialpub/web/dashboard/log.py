"""`/log` and `/log.csv`: the outcomes of deliveries. `/audit`: the audit log of owners, API keys and commands."""

from starlette.responses import Response

from socialpub.core.errors import InvalidRequest
from socialpub.db.models import ProfileRow
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import TYPES, LogFilter
from socialpub.db.tables import audit_log as audit_log_tables
from socialpub.db.tables import profile_rows
from socialpub.db.tables.audit_log import AuditEntry
from socialpub.ops import audit_text
from socialpub.publishing import log_export
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser.forms import ListFilter
from socialpub.web.dashboard.browser.visit import Visit, page

ALL = "all"
"""Every type. Without a type, the page shows outcomes and the file contains every entry."""
PER_PAGE = 50

AUDIT_LABELS = {
    "key": "Keys",
    "profile": "Profiles",
    "publishing": "Pause and resume",
    "backup": "Backups",
    "secret": "secret.key",
    "notify": "Notifications",
    "webhook": "Webhooks",
    "password": "Password",
    "session": "Sign-ins",
    "post": "Posts",
}
_SUBJECT_PAGES = {"post": "/posts/", "profile": "/profiles/"}


@page()
async def index(rt: Runtime, visit: Visit) -> Response:
    rows = profile_rows.list_all(rt.db)
    wanted, query = _read_filter(visit, rows, whole=False)
    loaded = await rt.read_in_thread(lambda db: log_list.load_page(db, query)) if query.is_slow else None
    return visit.show(
        "log.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter is ignored. See the fields below." if wanted.errors else None,
        found=loaded or log_list.load_page(rt.db, query),
        wanted=wanted,
        query=query,
        profiles=rows,
        names=labels.profile_names(rows, network_is_shown=True),
        types=TYPES,
    )


@page()
async def download(rt: Runtime, visit: Visit) -> Response:
    wanted, query = _read_filter(visit, profile_rows.list_all(rt.db), whole=True)
    for name, reason in wanted.errors.items():
        raise InvalidRequest.at(message=f"Cannot use the filter “{name}”. {reason}")
    name = f"socialpub-log-{visit.now.astimezone(visit.zone):%Y-%m-%d}.csv"
    return visit.download(name, "text/csv; charset=utf-8; header=present", log_export.export_csv(rt, query))


def _read_filter(visit: Visit, rows: list[ProfileRow], *, whole: bool) -> tuple[ListFilter, LogFilter]:
    """Read the filter. With `whole`, no type means every entry."""
    wanted = ListFilter(visit.query, visit.zone)
    network = wanted.choice("network", visit.rt.providers)
    profile = wanted.choice("profile", {row.id for row in rows}, "profile")
    kind = wanted.choice("type", (*TYPES, ALL))
    return wanted, LogFilter(
        provider=network,
        profile_id=profile,
        type=None if kind == ALL else kind,
        only_outcomes=not whole and kind is None,
        since=wanted.day("from"),
        until=wanted.day("to", end=True),
        error=wanted.text("search"),
        below=visit.query.number("below", max_digits=15),
        per_page=PER_PAGE,
    )


@page()
async def audit_log(rt: Runtime, visit: Visit) -> Response:
    kind = visit.query.text("kind") if visit.query.text("kind") in audit_log_tables.KINDS else ""
    at = visit.query.number("page") or 0
    loaded = await rt.read_in_thread(lambda db: audit_log_tables.load_page(db, (kind,) if kind else (), at, PER_PAGE))
    return visit.show(
        "audit.html",
        found=loaded,
        kind=kind,
        kinds={name: AUDIT_LABELS.get(name, name) for name in audit_log_tables.KINDS},
        at=at,
        per_page=PER_PAGE,
        address=lambda page: visit.href("/audit") + f"?page={page}" + (f"&kind={kind}" if kind else ""),
        who=audit_text.describe_actor,
        what=lambda entry: audit_text.describe(audit_text.with_times(entry, visit.written)),
        place=_subject_page,
    )


def _subject_page(entry: AuditEntry) -> str | None:
    folder = _SUBJECT_PAGES.get(entry.action.partition(".")[0])
    return f"{folder}{entry.subject_id}" if folder and entry.subject_id else None
