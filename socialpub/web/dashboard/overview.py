"""`/`: alerts for the owner, upcoming posts and published posts."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import takewhile

from starlette.requests import Request
from starlette.responses import Response

from socialpub.accounts import api_keys
from socialpub.core.clock import parse, stamp
from socialpub.db.queries import calendar, log_list
from socialpub.db.queries.calendar import CalendarPost
from socialpub.db.queries.log_list import LogEntry
from socialpub.db.states import PostStatus
from socialpub.db.tables import post_rows, profile_rows
from socialpub.ops import alerts
from socialpub.providers.registry import DRAFT_MODES, LABELS
from socialpub.publishing.posts.details import IN_APP
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser.visit import REFRESH_LATER_SECONDS, REFRESH_SOON_SECONDS, Visit, page
from socialpub.web.dashboard.calendar import CalendarEntry
from socialpub.web.dashboard.labels import NetworkState
from socialpub.web.http.responses import prefers_page
from socialpub.web.pages import pages

MAX_PENDING = 10
MAX_UPCOMING = 60
"""The number of posts to load: more than the page shows, because a series is one entry."""
MAX_PUBLISHED = 100
DRAFTS_SINCE = timedelta(days=7)
WATCHED_AHEAD = timedelta(hours=1)
"""The page refreshes itself if a post is due within this time."""
FOLD_FROM = 4
SERIES_LETTERS = 20
"""Posts to the same networks are a series if their texts begin with this number of equal letters, without digits."""
MAX_LINKS = 5

_NO_LETTERS = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class Flow:
    pending: tuple[CalendarPost, ...]
    """The last posts in progress, oldest first."""
    pending_count: int
    upcoming: tuple[CalendarPost, ...]
    scheduled_count: int
    published: list[LogEntry]
    """The last published deliveries, newest first."""
    in_app: list[LogEntry]
    """The TikTok drafts of the last 7 days, newest first."""


@dataclass(frozen=True, slots=True)
class PublishedPost:
    post: CalendarPost
    at: str
    networks: list[tuple[NetworkState, list[str]]]
    """Each network with its first `MAX_LINKS` addresses."""


async def front(request: Request) -> Response:
    """Show the overview to a browser, and the URL of the API to a program."""
    return await (show(request) if prefers_page(request) else pages.show_home(request))


@page()
async def show(rt: Runtime, visit: Visit) -> Response:
    needs, flow = alerts.load_alert_facts(rt), read_flow(rt)
    entries = [CalendarEntry.from_post(post, visit.zone, visit.now) for post in (*flow.pending, *flow.upcoming)]
    groups = _fold(entries)[:MAX_PENDING]
    profile_counts = profile_rows.count_by_provider_and_status(rt.db)
    steps = {
        "profile": any(status != "disconnected" for _, status, _ in profile_counts),
        "post": post_rows.newest_created_at(rt.db) is not None,
        "key": bool(api_keys.list_all(rt.db)),
    }
    return visit.show(
        "overview.html",
        needs=needs,
        flow=flow,
        groups=groups,
        shown_count=sum(map(len, groups)),
        published=_published(rt, flow.published),
        in_app=_published(rt, flow.in_app),
        names=labels.profile_names(profile_rows.list_all(rt.db)),
        steps=None if steps["post"] and steps["profile"] else steps,
        # Before the first post, there is nothing to back up.
        backup_reminder=needs.backup_reminder if steps["post"] else None,
        alerts=alerts,
        refresh_seconds=_refresh_seconds(visit, flow, paused=needs.paused_at is not None),
    )


def read_flow(rt: Runtime) -> Flow:
    db = rt.db
    counts = dict(post_rows.count_by_status(db, (PostStatus.PENDING, PostStatus.SCHEDULED)))
    # Due posts that still wait, for example because of a pause, come first.
    since = stamp(rt.now() - rt.settings.publishing.max_lateness)
    published = log_list.published(db, MAX_PUBLISHED)
    drafts = log_list.published(db, MAX_PUBLISHED, DRAFT_MODES, stamp(rt.now() - DRAFTS_SINCE))
    return Flow(
        pending=calendar.pending_posts(db, MAX_PENDING),
        pending_count=counts.get("pending", 0),
        upcoming=calendar.upcoming_posts(db, since, MAX_UPCOMING),
        scheduled_count=counts.get("scheduled", 0),
        published=[entry for entry in published if labels.entry_outcome(entry) != IN_APP],
        in_app=[entry for entry in drafts if labels.entry_outcome(entry) == IN_APP],
    )


def _fold(entries: Sequence[CalendarEntry]) -> list[Sequence[CalendarEntry]]:
    """Group at least `FOLD_FROM` successive posts of one series or one day."""
    groups = []
    while entries:
        run = max(_count_equal(entries, _series), _count_equal(entries, _day))
        count = run if run >= FOLD_FROM else 1
        groups.append(entries[:count])
        entries = entries[count:]
    return groups


def _count_equal(entries: Sequence[CalendarEntry], key: Callable[[CalendarEntry], object]) -> int:
    first = key(entries[0])
    return sum(1 for _ in takewhile(lambda entry: key(entry) == first, entries))


def _series(entry: CalendarEntry) -> tuple[str, str, bool]:
    letters = " ".join(_NO_LETTERS.sub(" ", entry.text).split()).casefold()
    return letters[:SERIES_LETTERS], entry.networks, entry.is_under_way


def _day(entry: CalendarEntry) -> tuple[date, bool]:
    return entry.local.date(), entry.is_under_way


def _published(rt: Runtime, entries: Sequence[LogEntry]) -> list[PublishedPost]:
    by_post: dict[str, list[LogEntry]] = {}
    for entry in entries:
        by_post.setdefault(entry.post_id, []).append(entry)
    newest = list(by_post)[:MAX_PENDING]
    posts = calendar.load_posts(rt.db, newest)
    return [_published_post(posts[post_id], by_post[post_id]) for post_id in newest if post_id in posts]


def _published_post(post: CalendarPost, newest_first: Sequence[LogEntry]) -> PublishedPost:
    order = list(LABELS)
    entries = sorted(newest_first, key=lambda entry: order.index(entry.provider))
    outcomes = (
        (log_entry.provider, log_entry.profile_name or "", labels.entry_outcome(log_entry)) for log_entry in entries
    )
    states = labels.network_states("settled", outcomes)
    urls: dict[str, list[str]] = {state.label: [] for state in states}
    for entry in entries:
        if entry.url and entry.url.startswith(("https://", "http://")):
            urls[LABELS[entry.provider]].append(entry.url)
    networks = [(state, urls[state.label][:MAX_LINKS]) for state in states]
    return PublishedPost(post, newest_first[0].occurred_at, networks)


def _refresh_seconds(visit: Visit, flow: Flow, *, paused: bool) -> int | None:
    if paused:
        return None
    if flow.pending_count:
        return REFRESH_SOON_SECONDS
    if flow.upcoming and parse(flow.upcoming[0].at) <= visit.now + WATCHED_AHEAD:
        return REFRESH_LATER_SECONDS
    return None
