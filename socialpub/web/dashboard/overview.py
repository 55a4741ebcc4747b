"""`/`: what needs the owner first, then what goes out next and what went out."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

from socialpub.accounts import api_keys, profiles
from socialpub.core.clock import parse
from socialpub.ops import overview, resume_sentences
from socialpub.ops.overview import Flow
from socialpub.providers.registry import LABELS
from socialpub.publishing import audiences
from socialpub.publishing.deliveries import OUTCOME_UNKNOWN
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import post_words, refresh
from socialpub.web.dashboard.calendar_entry import CalendarEntry
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit
from socialpub.web.pages import home
from socialpub.web.request import Request

LATER = timedelta(hours=1)
"""What is due within it is watched."""


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """What a new installation has already."""

    profile: bool
    post: bool
    key: bool


async def front(request: Request) -> Answer | None:
    """The overview for a browser; for a program what there is."""
    return await (show(request) if request.prefers_page() else home.show(request))


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The first page."""
    needs, flow = overview.needs(rt), overview.flow(rt)
    entries = [CalendarEntry.of(post, visit.zone, visit.now) for post in (*flow.pending, *flow.upcoming)]
    steps = _first_steps(rt)
    return visit.show(
        "overview.html",
        needs=needs,
        flow=flow,
        entries=entries[: overview.MOST],
        ended=[list(of_post) for _, of_post in groupby(flow.ended, key=attrgetter("post_id"))],
        steps=None if steps.post and steps.profile else steps,
        # Before there is anything to lose, nobody has to be reminded of copies.
        copy_reminder=needs.copy_reminder if steps.post else None,
        labels=LABELS,
        sentences=resume_sentences,
        refresh_seconds=_refresh_seconds(visit, flow, paused=needs.paused_at is not None),
        outcome_unknown=OUTCOME_UNKNOWN,
        words=post_words,
    )


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
        return refresh.SOON_SECONDS
    if flow.upcoming and parse(flow.upcoming[0].at) <= visit.now + LATER:
        return refresh.LATER_SECONDS
    return None
