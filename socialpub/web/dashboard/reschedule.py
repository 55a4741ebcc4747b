"""`/posts/{id}/reschedule`: another time for a scheduled post. The calendar's script sends the same form.

`back` is the page of ours that led here; what the move came to is said there.
"""

from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db import json_views
from socialpub.publishing import posts
from socialpub.publishing.drafts import Change
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import addresses, times
from socialpub.web.dashboard.page import nothing_here, page
from socialpub.web.dashboard.visit import Visit

NO_TIME = "Choose a date and a time, such as 2026-11-25 09:00."


@page()
async def form(rt: Runtime, visit: Visit) -> Answer:
    """The field for the new time, with the present one in it."""
    post = _find(rt, visit)
    back = _back(visit, visit.query.text("back"))
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict as error:
        return visit.go(back, alert=error.detail)
    return _page(visit, post, back, times.for_field(post["scheduledAt"], visit.zone))


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """The post gets its new time, or the reason why it does not is told."""
    post = _find(rt, visit)
    back = _back(visit, visit.form.text("back"))
    # The zone that the form showed: the browser's may be another one by now.
    visit.zone = times.zone_named(visit.form.text("zone")) if visit.form.text("zone") else visit.zone
    given = visit.form.text("at")
    at = times.of_field(given, visit.zone)
    if at is None:
        return _page(visit, post, back, given, NO_TIME)
    change = Change(given=frozenset({"scheduled_at"}), scheduled_at=at)
    try:
        await rt.write_soon(posts.edit, post["id"], change, OWNER)
    except InvalidRequest as error:
        # Behind the semicolon stands what a program can send instead.
        return _page(visit, post, back, given, f"The time {error.errors[0].message.partition(';')[0]}.")
    except Conflict as error:
        return visit.go(back, alert=error.detail)
    return visit.go(back, status=f"The post is moved: it goes out on {times.written(at, visit.zone)}.")


def _find(rt: Runtime, visit: Visit) -> dict[str, Any]:
    shown = json_views.post(rt.reader, visit.params["postId"])
    if shown is None:
        raise nothing_here()
    post: dict[str, Any] = orjson.loads(shown)
    return post


def _back(visit: Visit, asked: str) -> str:
    return asked if addresses.is_local(asked) else f"/posts/{visit.params['postId']}"


def _page(visit: Visit, post: dict[str, Any], back: str, value: str, error: str | None = None) -> Answer:
    return visit.show(
        "reschedule.html",
        http_status=400 if error else 200,
        problem=f"The post is not moved. {error}" if error else None,
        post=post,
        back=back,
        value=value,
        error=error,
    )
