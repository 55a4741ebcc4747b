"""`/posts` and `/posts/{postId}`: the list of posts, newest first, and one post.

The filter has the names of the API, and `search`. `orAccepted` includes posts without a schedule by their time of
acceptance, so that a period contains the same posts as the calendar.
"""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.responses import Response

from socialpub.accounts import profiles, remedies
from socialpub.accounts.api_keys import OWNER
from socialpub.core import post_summary
from socialpub.db.queries import api_json
from socialpub.db.queries.post_list import PostFilter
from socialpub.db.tables import artifact_rows, delivery_rows, profile_rows
from socialpub.db.tables.waits import WaitReason
from socialpub.ops import audit_text
from socialpub.providers.base import LABELS as LABELS_OF_CHOICES
from socialpub.providers.base import LINK_CARD
from socialpub.providers.options import find_post_option, spelled
from socialpub.providers.registry import OPTIONS
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok import options as tiktok_options
from socialpub.publishing.media import renditions, thumbnails
from socialpub.publishing.posts import details as post_details
from socialpub.publishing.posts import posts, previews
from socialpub.publishing.posts.details import DeliveryDetails, PostDetails
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser.forms import ListFilter
from socialpub.web.dashboard.browser.visit import REFRESH_LATER_SECONDS, REFRESH_SOON_SECONDS, Visit, no_such_page, page
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.labels import DELIVERY_STATES, POST_STATES
from socialpub.web.dashboard.posts import actions, submissions
from socialpub.web.http.static import static_url

PER_PAGE = 20
MAX_SEARCH_LETTERS = 200
MAX_PAGE = 10**6


@page()
async def index(rt: Runtime, visit: Visit) -> Response:
    profiles_by_id = {row.id: row for row in profile_rows.list_all(rt.db)}
    wanted, query = _read_filter(visit, profiles_by_id)
    loaded = await posts.load_page(rt, OWNER, query)
    rows = [orjson.loads(post_json) for post_json in loaded.shown]
    rows += [
        orjson.loads(post_json) for post_json in (api_json.post(rt.db, post_id) for post_id in loaded.rest) if post_json
    ]
    or_accepted = "on" if query.or_accepted else ""
    return visit.show(
        "posts.html",
        http_status=400 if wanted.errors else 200,
        problem="Part of the filter is ignored. See the fields below." if wanted.errors else None,
        posts=rows,
        unapproved=delivery_rows.unapproved_among(rt.db, [post["id"] for post in rows]),
        total=loaded.total,
        wanted=wanted,
        query=query,
        is_open=bool(query.profiles or query.providers or query.windowed or wanted.errors),
        address=lambda number: visit.href(wanted.address("/posts", orAccepted=or_accepted, page=number)),
        profiles=profiles_by_id.values(),
        names=labels.profile_names(profiles_by_id.values(), network_is_shown=True),
    )


def _read_filter(visit: Visit, known_profiles: Collection[str]) -> tuple[ListFilter, PostFilter]:
    wanted = ListFilter(visit.query, visit.zone)
    return wanted, PostFilter(
        text=wanted.text("search", MAX_SEARCH_LETTERS),
        status=wanted.choice("status", POST_STATES),
        outcome=wanted.choice("deliveryStatus", DELIVERY_STATES),
        profiles=wanted.choices("profileIds", known_profiles, "profile"),
        providers=wanted.choices("providers", visit.rt.providers, "network"),
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
    wanted.errors["page"] = "The page is not a number. This is the first page."
    return 0


@page()
async def show(rt: Runtime, visit: Visit) -> Response:
    details = actions.load_details(rt, visit)
    post = details.post
    refresh_seconds = REFRESH_SOON_SECONDS if details.reads_card else _refresh_seconds(details)
    was_read = visit.query.ticked("card") and not details.reads_card
    if visit.is_fragment and (refresh_seconds is None or was_read):
        visit.headers.append(("hx-refresh", "true"))  # reload the whole page, because the actions have changed
    # Previews need a click, because measuring the text takes time.
    previewed = None
    if visit.query.ticked("preview"):
        previewed = await rt.read_in_thread(lambda db: previews.post_previews(rt, db, post["id"]))
    return visit.show(
        "post.html",
        details=details,
        post=post,
        actions=actions.list_actions(rt, details),
        version=details.version,
        form_id=submissions.new_id(),
        refresh_seconds=refresh_seconds,
        previewed=previewed,
        link=_web_link,
        next_try=post_summary.next_try,
        pasted=_is_pasted(post),
        options_of=lambda one: _options(rt, one),
        waits_for=lambda one: _waits_for(rt, one),
        title_of=lambda post_id: _title_of(rt, post_id),
        is_all_published=all(one.outcome == "published" for one in details.deliveries),
        names=labels.profile_names(profile_rows.list_all(rt.db), network_is_shown=True),
        in_app=post_details.IN_APP,
        who=audit_text.describe_actor,
        what=lambda entry: audit_text.describe_on_post(audit_text.with_times(entry, visit.written)),
    )


@page()
async def card_image(rt: Runtime, visit: Visit) -> Response:
    """Send a thumbnail of the image of a link card, which the owner sees before the approval."""
    delivery = delivery_rows.find(rt.db, visit.params["deliveryId"])
    image = delivery and delivery.memo.get(LINK_CARD, {}).get("image")
    if delivery is None or not image:
        raise no_such_page()
    source = renditions.path_of(rt, delivery.id, image["name"])
    made = await thumbnails.load_of(rt, source, source.with_suffix(".jpg"))
    return visit.go(static_url("no_image.svg")) if made is None else visit.show_image(made)


def _is_pasted(post: dict[str, Any]) -> bool:
    """Return whether the owner must paste the text in the TikTok app."""
    has_video = any(item.get("contentType", "").startswith("video/") for item in post["media"])
    return any(
        delivery["provider"] == TikTok.name
        and tiktok_options.loses_caption(delivery["providerOptions"], has_video=has_video)
        for delivery in post["deliveries"]
    )


def _refresh_seconds(details: PostDetails) -> int | None:
    status = details.post["status"]
    if status == "scheduled":
        return REFRESH_LATER_SECONDS
    return REFRESH_SOON_SECONDS if status == "pending" else None


def _web_link(url: str | None) -> str | None:
    """Return the URL if it is safe as a link."""
    try:
        return url if url and urlsplit(url).scheme in ("http", "https") else None
    except ValueError:
        return None


def _waits_for(rt: Runtime, details: DeliveryDetails) -> str | None:
    """Return the reason for the wait of a delivery, with the button name instead of a command."""
    if details.waits_for is None:
        return None
    match details.waits_for.reason:
        case WaitReason.APPROVAL:
            return "Your approval."
        case WaitReason.PARENT:
            return f"The post “{_title_of(rt, details.waits_for.post_id or '')}”, to which this post replies."
        case WaitReason.RECONNECT:
            profile = profiles.get(rt.db, details.delivery.profile_id)
            return remedies.reconnect_message(profile.provider, profile.reason)
        case _:
            return details.waits_for.sentence


def _options(rt: Runtime, details: DeliveryDetails) -> list[tuple[str, str, str | None]]:
    """Return the label and the value of each option, and the path of the post that it names."""
    options: dict[str, Any] = details.shown["providerOptions"]
    table = OPTIONS.get(details.delivery.provider, ())
    named = None if (post := find_post_option(table)) is None else spelled(post.name, table, options)
    return [
        (
            "Reply to" if key == named else option_fields.OPTION_LABELS.get(key, key),
            _title_of(rt, value) if key == named else _value(rt, details, key, value),
            f"/posts/{value}" if key == named else None,
        )
        for key, value in options.items()
    ]


def _title_of(rt: Runtime, post_id: str) -> str:
    """Return the start of the text of another post, or its id if the post was removed."""
    post = api_json.post(rt.db, post_id)
    return post_id if post is None else labels.title(orjson.loads(post))


def _value(rt: Runtime, details: DeliveryDetails, key: str, value: Any) -> str:
    """Return the value with its stored label. Pages do not ask networks."""
    if key in option_fields.ARTIFACTS:
        artifact = artifact_rows.find(rt.db, str(value))
        return "removed file" if artifact is None else str(artifact.file_name)
    delivery = details.delivery
    label = delivery.memo.get(LABELS_OF_CHOICES, {}).get(key)
    label = label or profile_rows.choice_labels(rt.db, delivery.profile_id, key).get(str(value))
    return f"{label} ({value})" if label and label != value else option_fields.value_text(key, value)
