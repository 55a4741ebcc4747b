"""`/posts/{id}/reschedule`: another time for a scheduled post. The calendar's script sends the same form.

`back` is the page of ours that led here; what the move came to is said there.
"""

from typing import Any

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.publishing import posts
from socialpub.publishing.drafts import Change
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import found_post, times
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

NO_TIME = "Choose a date and a time, such as 2026-11-25 09:00."


@page()
async def form(rt: Runtime, visit: Visit) -> Answer:
    """The field for the new time, with the present one in it."""
    post = found_post.find(rt, visit).post
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    return _page(visit, post, times.for_field(post["scheduledAt"], visit.zone))


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """The post gets its new time, or the reason why it does not is told."""
    post = found_post.find(rt, visit).post
    # The zone that the form showed: the browser's may be another one by now.
    visit.zone = times.zone_named(visit.form.text("zone")) if visit.form.text("zone") else visit.zone
    given = visit.form.text("at")
    at = times.of_field(given, visit.zone)
    if at is None:
        return _page(visit, post, given, NO_TIME)
    change = Change(given=frozenset({"scheduled_at"}), scheduled_at=at)
    try:
        await rt.write_soon(posts.edit, post["id"], change, OWNER)
    except InvalidRequest as error:
        # Behind the semicolon stands what a program can send instead.
        return _page(visit, post, given, f"The time {error.errors[0].message.partition(';')[0]}.")
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    return found_post.go(visit, status=f"The post is moved: it goes out on {times.written(at, visit.zone)}.")


def _page(visit: Visit, post: dict[str, Any], value: str, error: str | None = None) -> Answer:
    return visit.show(
        "reschedule.html",
        http_status=400 if error else 200,
        problem=f"The post is not moved. {error}" if error else None,
        post=post,
        back=found_post.back(visit),
        value=value,
        error=error,
    )
