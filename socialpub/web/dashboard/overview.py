"""`/`: what needs the owner first, then what is published next and what was published."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import takewhile

from socialpub.accounts import api_keys, profiles
from socialpub.core.clock import parse
from socialpub.db.queries import calendar
from socialpub.db.queries.calendar import CalendarPost
from socialpub.db.queries.log_list import LogEntry
from socialpub.ops import alerts, overview
from socialpub.ops.overview import Flow
from socialpub.providers.registry import LABELS
from socialpub.publishing.posts import audiences
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import rendering
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.calendar import CalendarEntry
from socialpub.web.dashboard.labels import NetworkState
from socialpub.web.http.answer import Answer
from socialpub.web.http.request import Request
from socialpub.web.pages import home

LATER = timedelta(hours=1)
"""What is due within it is watched."""
FOLD_FROM = 4
SERIES_LETTERS = 20
"""Posts to the same networks whose texts begin with the same letters, whatever the digits, are a series."""
MAX_LINKS = 5

_NO_LETTERS = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """What a new installation has already."""

    profile: bool
    post: bool
    key: bool


async def front(request: Request) -> Answer | None:
    """The overview for a browser; for a program what there is."""
    return await (show(request) if request.prefers_page() else home.show_home(request))


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """An entry of “Next”, and the rest of its series or day, which is folded."""

    first: CalendarEntry
    rest: list[CalendarEntry]


@dataclass(frozen=True, slots=True)
class PublishedPost:
    post: CalendarPost
    at: str
    networks: list[tuple[NetworkState, list[str]]]
    """With the addresses of the network's deliveries, the first `MAX_LINKS`."""


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The first page."""
    needs, flow = alerts.read_needs(rt), overview.flow(rt)
    entries = [CalendarEntry.of(post, visit.zone, visit.now) for post in (*flow.pending, *flow.upcoming)]
    groups = fold(entries)[: overview.MAX_PENDING]
    steps = _first_steps(rt)
    return visit.show(
        "overview.html",
        needs=needs,
        flow=flow,
        groups=groups,
        shown_count=sum(1 + len(group.rest) for group in groups),
        published=_published(rt, flow.published),
        in_app=_published(rt, flow.in_app),
        names=labels.profile_names(profiles.list_all(rt.reader)),
        steps=None if steps.post and steps.profile else steps,
        # Before there is anything to lose, nobody has to be reminded of copies.
        copy_reminder=needs.copy_reminder if steps.post else None,
        labels=LABELS,
        sentences=alerts,
        words=labels,
        refresh_seconds=_refresh_seconds(visit, flow, paused=needs.paused_at is not None),
    )


def fold(entries: Sequence[CalendarEntry]) -> list[EntryGroup]:
    """Group what follows each other: posts of one series, else posts of one day. Only `FOLD_FROM` or more become one
    group."""
    groups, at = [], 0
    while at < len(entries):
        run = max(_run(entries, at, _series), _run(entries, at, _day))
        count = run if run >= FOLD_FROM else 1
        groups.append(EntryGroup(entries[at], list(entries[at + 1 : at + count])))
        at += count
    return groups


def _run(entries: Sequence[CalendarEntry], at: int, key: Callable[[CalendarEntry], object]) -> int:
    """How many entries from `at` on have the same key."""
    first = key(entries[at])
    return sum(1 for _ in takewhile(lambda entry: key(entry) == first, entries[at:]))


def _series(entry: CalendarEntry) -> tuple[str, str, bool]:
    letters = " ".join(_NO_LETTERS.sub(" ", entry.text).split()).casefold()
    return letters[:SERIES_LETTERS], entry.networks, entry.is_under_way


def _day(entry: CalendarEntry) -> tuple[date, bool]:
    return entry.local.date(), entry.is_under_way


def _published(rt: Runtime, entries: Sequence[LogEntry]) -> list[PublishedPost]:
    """The posts of these entries, each with the deliveries of these entries alone."""
    by_post: dict[str, list[LogEntry]] = {}
    for entry in entries:
        by_post.setdefault(entry.post_id, []).append(entry)
    newest = list(by_post)[: overview.MAX_PENDING]
    found = calendar.named(rt.reader, newest)
    return [_published_post(found[post_id], by_post[post_id]) for post_id in newest if post_id in found]


def _published_post(post: CalendarPost, newest_first: Sequence[LogEntry]) -> PublishedPost:
    order = list(LABELS)
    entries = sorted(newest_first, key=lambda entry: order.index(entry.provider))
    found = ((one.provider, one.profile_name or "", labels.outcome_of_entry(one)) for one in entries)
    states = labels.by_network("settled", found)
    urls: dict[str, list[str]] = {state.label: [] for state in states}
    for entry in entries:
        if entry.url and entry.url.startswith(("https://", "http://")):
            urls[LABELS[entry.provider]].append(entry.url)
    networks = [(state, urls[state.label][:MAX_LINKS]) for state in states]
    return PublishedPost(post, newest_first[0].occurred_at, networks)


def _first_steps(rt: Runtime) -> FirstSteps:
    return FirstSteps(
        any(status != "disconnected" for _, status, _ in profiles.count(rt.reader)),
        any(count for _, count in audiences.count_posts(rt.reader)),
        bool(api_keys.list_all(rt.reader)),
    )


def _refresh_seconds(visit: Visit, flow: Flow, *, paused: bool) -> int | None:
    """None while nothing happens."""
    if paused:
        return None
    if flow.pending_count:
        return rendering.REFRESH_SOON_SECONDS
    if flow.upcoming and parse(flow.upcoming[0].at) <= visit.now + LATER:
        return rendering.REFRESH_LATER_SECONDS
    return None
