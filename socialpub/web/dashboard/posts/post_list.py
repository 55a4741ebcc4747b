"""What the address of the list of posts asks for. The names are the API's; `search` for the text, and `orAccepted` for
what was to go out at once, so that a window of time holds what the calendar shows in it.

Times come from fields in the browser's zone, or as the API writes them. What is wrong is told at its field, and the
rest of the address counts all the same.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from urllib.parse import urlencode

import orjson
from pydantic_core import PydanticCustomError

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.db.connection import Reader
from socialpub.db.queries import api_json, post_list
from socialpub.db.queries.post_list import PostFilter, PostPage
from socialpub.providers.registry import LABELS, PROVIDERS
from socialpub.publishing.posts import audiences
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.labels import DELIVERY_STATES, POST_STATES
from socialpub.web.http.answer import Answer
from socialpub.web.http.shapes import read_instant

PER_PAGE = 20
MAX_SEARCH_LETTERS = 200
MAX_PAGE = 10**6
_REST_OF_MINUTE = timedelta(seconds=59, milliseconds=999)
"""A field knows no seconds, and the minute that a window ends with belongs to it."""


@dataclass
class ListedFilter:
    """`shown` is what stands in the fields, by name; `errors` what is wrong with it."""

    query: PostFilter = field(default_factory=lambda: PostFilter(per_page=PER_PAGE))
    search: str = ""
    shown: dict[str, str] = field(default_factory=dict)
    profile_ids: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def more_than_search(self) -> bool:
        """Whether one of the fields that are folded away is in use."""
        return bool(
            self.profile_ids
            or self.providers
            or any(self.shown.get(name) for name in ("scheduledAfter", "scheduledBefore"))
        )

    @property
    def any(self) -> bool:
        return bool(
            self.search or self.more_than_search or self.shown.get("status") or self.shown.get("deliveryStatus")
        )

    def address(self, page: int) -> str:
        """Where a page of this very list is."""
        fields: list[tuple[str, str]] = [(name, value) for name, value in self.shown.items() if value]
        fields += [("profileIds", value) for value in self.profile_ids]
        fields += [("providers", value) for value in self.providers]
        fields += [("page", str(page))] if page else []
        return "/posts" + (f"?{urlencode(fields)}" if fields else "")


def read_filter(query: Form, zone: tzinfo, known_profiles: Collection[str]) -> ListedFilter:
    """The filter of an address."""
    found = ListedFilter()
    found.search = found.shown["search"] = query.text("search").strip()[:MAX_SEARCH_LETTERS]
    status = _choice(query, "status", POST_STATES, found)
    outcome = _choice(query, "deliveryStatus", DELIVERY_STATES, found)
    found.profile_ids = _several(query, "profileIds", known_profiles, found, "profile")
    found.providers = _several(query, "providers", PROVIDERS, found, "network")
    after, before = (_instant(query, name, zone, found) for name in ("scheduledAfter", "scheduledBefore"))
    if query.ticked("orAccepted"):
        found.shown["orAccepted"] = "on"
    found.query = replace(
        found.query,
        text=found.search or None,
        status=status,
        outcome=outcome,
        profiles=found.profile_ids,
        providers=found.providers,
        scheduled_after=stamp(after) if after else None,
        scheduled_before=stamp(before) if before else None,
        or_accepted=query.ticked("orAccepted"),
        page=_page(query, found),
    )
    return found


def _choice(query: Form, name: str, known: Collection[str], found: ListedFilter) -> str | None:
    text = query.text(name).strip()
    if not text:
        return None
    if text not in known:
        found.errors[name] = f"“{text[:40]}” is none of {', '.join(known)}; it was left out."
        return None
    found.shown[name] = text
    return text


def _several(query: Form, name: str, known: Collection[str], found: ListedFilter, what: str) -> tuple[str, ...]:
    given = [one for text in query.texts(name) for one in text.split(",") if one]
    unknown = [one for one in given if one not in known]
    if unknown:
        found.errors[name] = f"“{unknown[0][:40]}” is no {what} here; it was left out."
    return tuple(dict.fromkeys(one for one in given if one in known))


def _instant(query: Form, name: str, zone: tzinfo, found: ListedFilter) -> datetime | None:
    text = query.text(name).strip()
    if not text:
        return None
    instant = times.of_field(text, zone)
    if instant is not None and name == "scheduledBefore":
        instant += _REST_OF_MINUTE
    instant = instant or _with_offset(text)
    if instant is None:
        found.errors[name] = f"“{text[:40]}” is no date and time; it was left out. Write it like 2026-11-25T09:00."
        return None
    found.shown[name] = times.for_field(stamp(instant), zone)
    return instant


def _with_offset(text: str) -> datetime | None:
    try:
        return read_instant(text)
    except PydanticCustomError:
        return None


def _page(query: Form, found: ListedFilter) -> int:
    if not query.text("page").strip():
        return 0
    number = query.number("page")
    if number is not None:
        return min(number, MAX_PAGE)
    found.errors["page"] = "The page is no number; this is the first one."
    return 0


# MERGED from web/dashboard/posts.py: `/posts` and `/posts/{postId}`: every post there is, and what became of one.


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """The posts, newest first, those that the address asks for."""
    known = {row.id: row for row in profiles.list_all(rt.reader)}
    wanted = read_filter(visit.query, visit.zone, known)
    found = await _read_page(rt, wanted)
    shown = [orjson.loads(one) for one in found.shown]
    shown += [orjson.loads(one) for one in (api_json.post(rt.reader, post_id) for post_id in found.rest) if one]
    return visit.show(
        "posts.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter was left out: see below." if wanted.errors else None,
        posts=shown,
        total=found.total,
        wanted=wanted,
        address=lambda number: visit.href(wanted.address(number)),
        profiles=known.values(),
        names=labels.profile_names(known.values(), network_is_shown=True),
        per_page=PER_PAGE,
        labels=LABELS,
        words=labels,
    )


async def _read_page(rt: Runtime, wanted: ListedFilter) -> PostPage:
    query = wanted.query

    def read(reader: Reader) -> PostPage:
        visible = audiences.visible_audiences(reader, OWNER, query.profiles or None, query.providers or None)
        return post_list.read(reader, replace(query, audiences=visible))

    looks_through = bool(query.profiles or query.providers or query.outcome)
    is_long = query.long or (looks_through and audiences.are_many(rt.reader))
    return await rt.read_aside(read) if is_long else read(rt.reader)
