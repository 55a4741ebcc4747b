"""`/posts` and `/posts/{postId}`: every post there is, and what became of one."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import orjson

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import OWNER
from socialpub.db import json_views, post_lists
from socialpub.db.post_lists import PostPage
from socialpub.db.transaction import Reader
from socialpub.ops import trail_sentences
from socialpub.providers.registry import LABELS
from socialpub.publishing import audiences, previews
from socialpub.publishing.post_details import PostDetails
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import found_post, option_words, post_actions, post_filters, post_words, refresh
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.post_filters import ListedFilter
from socialpub.web.dashboard.visit import Visit

MOST_SHOWN_DELIVERIES = 8
"""In the list, of one post."""


@page()
async def index(rt: Runtime, visit: Visit) -> Answer:
    """The posts, newest first, those that the address asks for."""
    known = {row["id"]: row for row in profiles.list_all(rt.reader)}
    wanted = post_filters.read(visit.query, visit.zone, known)
    found = await _read(rt, wanted)
    shown = [orjson.loads(one) for one in found.shown]
    shown += [orjson.loads(one) for one in (json_views.post(rt.reader, post_id) for post_id in found.rest) if one]
    return visit.show(
        "posts.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter was left out: see below." if wanted.errors else None,
        posts=shown,
        total=found.total,
        wanted=wanted,
        address=lambda number: visit.href(wanted.address(number)),
        profiles=known.values(),
        most_shown=MOST_SHOWN_DELIVERIES,
        per_page=post_filters.PER_PAGE,
        labels=LABELS,
        words=post_words,
    )


async def _read(rt: Runtime, wanted: ListedFilter) -> PostPage:
    query = wanted.query

    def read(reader: Reader) -> PostPage:
        visible = audiences.visible(reader, OWNER, query.profiles or None, query.providers or None)
        return post_lists.read(reader, replace(query, audiences=visible))

    looks_through = bool(query.profiles or query.providers or query.outcome)
    is_long = query.long or (looks_through and audiences.are_many(rt.reader))
    return await rt.read_aside(read) if is_long else read(rt.reader)


@page()
async def show(rt: Runtime, visit: Visit) -> Answer:
    """One post: its text and media, each delivery, and what can be done."""
    details = found_post.find(rt, visit)
    refresh_seconds = _refresh_seconds(details)
    if refresh_seconds is None and visit.is_fragment:
        visit.headers.append((b"hx-refresh", b"true"))  # what can be done has changed as well: the whole page anew
    # Weighing a text can take a while; of a page that refreshes itself only the deliveries are exchanged.
    post_id = details.post["id"]
    previewed = [] if visit.is_fragment else await rt.read_aside(lambda reader: previews.of_post(rt, reader, post_id))
    return visit.show(
        "post.html",
        details=details,
        post=details.post,
        media=[_media(visit, item) for item in details.post["media"]],
        actions=post_actions.applying(rt, details),
        refresh_seconds=refresh_seconds,
        previewed=previewed,
        link=_link,
        options_of=_options,
        labels=LABELS,
        words=post_words,
        who=trail_sentences.who,
        what=trail_sentences.what,
    )


def _refresh_seconds(details: PostDetails) -> int | None:
    """None when nothing happens to the post any more."""
    status = details.post["status"]
    if status == "scheduled":
        return refresh.LATER_SECONDS
    return refresh.SOON_SECONDS if status == "pending" else None


@dataclass(frozen=True, slots=True)
class PostMedia:
    """`url` is where this page finds the whole file; None when its bytes were removed."""

    artifact_id: str
    kind: str
    content_type: str
    alt: str | None
    url: str | None


def _media(visit: Visit, item: dict[str, Any]) -> PostMedia:
    content_type = item.get("contentType", "")
    url = item.get("url")
    return PostMedia(
        item["artifactId"], content_type.partition("/")[0], content_type, item.get("alt"), url and visit.own_href(url)
    )


def _link(url: str | None) -> str | None:
    """An address that a network told, if a browser may be sent there."""
    try:
        return url if url and urlsplit(url).scheme in ("http", "https") else None
    except ValueError:
        return None


def _options(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Options in words: label and value."""
    return [(option_words.LABELS.get(key, key), _value(value)) for key, value in given.items()]


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return option_words.value(value)
        case list():
            return ", ".join(map(_value, value))
        case _:
            return str(value)
