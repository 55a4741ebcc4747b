"""`/posts`: every post, newest first, and what the list can be narrowed to.

The names of the fields are the API's, with `search` for the text. `orAccepted` adds posts without a schedule, by the
time of their acceptance, so that a window of time holds the same posts as the calendar.
"""

from collections.abc import Collection
from dataclasses import replace

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.db.connection import Reader
from socialpub.db.queries import api_json, post_list
from socialpub.db.queries.post_list import PostFilter, PostPage
from socialpub.db.tables import audience_rows, profile_rows
from socialpub.providers.registry import PROVIDERS
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser.forms import ListFilter
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.labels import DELIVERY_STATES, POST_STATES
from socialpub.web.http.answer import Answer

PER_PAGE = 20
MAX_SEARCH_LETTERS = 200
MAX_PAGE = 10**6


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """Show the posts that the address asks for."""
    known = {row.id: row for row in profile_rows.list_all(rt.reader)}
    wanted, query = _read_filter(visit, known)
    found = await _read_page(rt, query)
    shown = [orjson.loads(one) for one in found.shown]
    shown += [orjson.loads(one) for one in (api_json.post(rt.reader, post_id) for post_id in found.rest) if one]
    or_accepted = "on" if query.or_accepted else ""
    return visit.show(
        "posts.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter was left out: see below." if wanted.errors else None,
        posts=shown,
        total=found.total,
        wanted=wanted,
        query=query,
        is_open=bool(query.profiles or query.providers or query.windowed or wanted.errors),
        address=lambda number: visit.href(wanted.address("/posts", orAccepted=or_accepted, page=number)),
        profiles=known.values(),
        names=labels.profile_names(known.values(), network_is_shown=True),
    )


def _read_filter(visit: Visit, known_profiles: Collection[str]) -> tuple[ListFilter, PostFilter]:
    wanted = ListFilter(visit.query, visit.zone)
    return wanted, PostFilter(
        text=wanted.text("search", MAX_SEARCH_LETTERS),
        status=wanted.choice("status", POST_STATES),
        outcome=wanted.choice("deliveryStatus", DELIVERY_STATES),
        profiles=wanted.choices("profileIds", known_profiles, "profile"),
        providers=wanted.choices("providers", PROVIDERS, "network"),
        scheduled_after=wanted.instant("scheduledAfter"),
        scheduled_before=wanted.instant("scheduledBefore", end=True),
        or_accepted=visit.query.ticked("orAccepted"),
        page=_read_number(wanted),
        per_page=PER_PAGE,
    )


def _read_number(wanted: ListFilter) -> int:
    if not wanted.query.text("page").strip():
        return 0
    number = wanted.query.number("page")
    if number is not None:
        return min(number, MAX_PAGE)
    wanted.errors["page"] = "The page is no number; this is the first one."
    return 0


async def _read_page(rt: Runtime, query: PostFilter) -> PostPage:
    def read(reader: Reader) -> PostPage:
        visible = audience_rows.visible_audiences(reader, OWNER, query.profiles or None, query.providers or None)
        return post_list.read(reader, replace(query, audiences=visible))

    looks_through = bool(query.profiles or query.providers or query.outcome)
    is_long = query.long or (looks_through and audience_rows.are_many(rt.reader))
    return await rt.read_in_thread(read) if is_long else read(rt.reader)
