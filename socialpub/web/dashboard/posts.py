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
from socialpub.providers.outcomes import LABELS as LABELS_OF_CHOICES
from socialpub.providers.registry import LABELS
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.providers.tiktok.adapter import TikTok
from socialpub.publishing import audiences, owner_wait, post_details, previews, uploads
from socialpub.publishing.post_details import DeliveryDetails, PostDetails
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import (
    found_post,
    option_fields,
    option_words,
    post_actions,
    post_filters,
    post_words,
    refresh,
    submissions,
)
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.post_filters import ListedFilter
from socialpub.web.dashboard.visit import Visit


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
        names=post_words.profile_names(known.values(), network_is_shown=True),
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
    wants_preview = visit.query.ticked("preview")
    if refresh_seconds is None and visit.is_fragment:
        visit.headers.append((b"hx-refresh", b"true"))  # what can be done has changed as well: the whole page anew
    # Weighing a text can take a while, and the page has the text already: previews are shown when they are asked for.
    post_id = details.post["id"]
    previewed = await rt.read_aside(lambda reader: previews.of_post(rt, reader, post_id)) if wants_preview else None
    return visit.show(
        "post.html",
        details=details,
        post=details.post,
        media=[_media(visit, item) for item in details.post["media"]],
        actions=post_actions.applying(rt, details),
        form_id=submissions.new_id(),
        refresh_seconds=refresh_seconds,
        previewed=previewed,
        link=_link,
        pasted=_is_pasted(details.post),
        options_of=lambda one: _options(rt, one),
        waits_for=lambda one: _waits_for(rt, one),
        is_all_published=all(one.outcome == "published" for one in details.deliveries),
        names=post_words.profile_names(profiles.list_all(rt.reader), network_is_shown=True),
        labels=LABELS,
        words=post_words,
        in_app=post_details.IN_APP,
        who=trail_sentences.who,
        what=lambda entry: trail_sentences.what_to_this(trail_sentences.with_times(entry, visit.written)),
    )


def _is_pasted(post: dict[str, Any]) -> bool:
    """Whether the owner pastes the text in a network's app."""
    has_video = any(item.get("contentType", "").startswith("video/") for item in post["media"])
    return any(
        one["provider"] == TikTok.name and tiktok_options.loses_caption(one["providerOptions"], has_video=has_video)
        for one in post["deliveries"]
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


def _waits_for(rt: Runtime, details: DeliveryDetails) -> str | None:
    """What a delivery waits for. How an account is connected again is said in the words of this place: what was stored
    names a command as well."""
    if details.waits_for is None:
        return None
    profile = profiles.find(rt.reader, details.delivery.profile_id)
    if profile is None or not details.delivery.progress.waits_for_owner:
        return details.waits_for.reason
    return owner_wait.reason(profile)


def _options(rt: Runtime, details: DeliveryDetails) -> list[tuple[str, str]]:
    """The options of a delivery in words: label and value."""
    given: dict[str, Any] = details.shown["providerOptions"]
    return [(option_words.LABELS.get(key, key), _value(rt, details, key, value)) for key, value in given.items()]


def _value(rt: Runtime, details: DeliveryDetails, key: str, value: Any) -> str:
    """The value as its network calls it, as far as that is stored: no network is asked for a page."""
    if key in option_fields.ARTIFACTS:
        artifact = uploads.find(rt, str(value))
        return "a file that was removed" if artifact is None else str(artifact["file_name"])
    delivery = details.delivery
    label = delivery.memo.get(LABELS_OF_CHOICES, {}).get(key)
    label = label or profiles.choice_labels(rt.reader, delivery.profile_id, key).get(str(value))
    return f"{label} ({value})" if label and label != value else option_words.shown(key, value)
