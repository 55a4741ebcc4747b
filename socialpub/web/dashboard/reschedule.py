"""`/posts/{id}/reschedule`: another time for a scheduled post. The calendar's script sends the same form.

`back` is the page of ours that led here. That page shows the result.
"""

from dataclasses import dataclass
from typing import Any

from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.publishing import posts
from socialpub.publishing.drafts import Change
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import found_post, post_versions, post_words, times
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.post_versions import KEEP, ChangedMeanwhile, PostVersion
from socialpub.web.dashboard.times import LocalTime
from socialpub.web.dashboard.visit import Visit

NO_TIME = "Choose a date and a time, such as 2026-11-25 09:00."


@dataclass(frozen=True, slots=True)
class NewTime:
    """What the form holds."""

    value: str
    which: str
    version: PostVersion
    """Of the post that the form was made from."""
    local: LocalTime | None


@page()
async def form(rt: Runtime, visit: Visit) -> Answer:
    """The field for the new time, with the present one in it, or with the one that the address names (`?at=`).

    The address may name the version that the new time was chosen for as well, and asks then."""
    post = found_post.find(rt, visit).post
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    present = PostVersion.of(post)
    value, which = times.of_query(visit.query.text("at") or post["scheduledAt"], visit.zone) or ("", "")
    chosen_for = PostVersion.read(visit.query) or present
    new = NewTime(value, which, chosen_for, times.read_local(value, visit.zone))
    return _page(visit, post, new) if chosen_for.is_of(post) else _ask(visit, post, new)


@page()
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """The post gets its new time, or the page says why it does not."""
    post = found_post.find(rt, visit).post
    if visit.form.text("do") == KEEP:
        return found_post.go(visit, status=post_versions.KEPT)
    # The zone that the form showed: the browser's may be another one by now.
    visit.zone = times.zone_named(visit.form.text("zone")) if visit.form.text("zone") else visit.zone
    given, which = visit.form.text("at"), visit.form.text("which")
    local = times.read_local(given, visit.zone)
    new = NewTime(given, which, PostVersion.read(visit.form) or PostVersion.of(post), local)
    if local is None:
        return _page(visit, post, new, NO_TIME)
    at = local.instant(which)
    if at is None:
        return _page(visit, post, new, f"{local.complaint[0].upper()}{local.complaint[1:]}.")
    said = f"it goes out on {times.written(at, visit.zone)}."
    change = Change(given=frozenset({"scheduled_at"}), scheduled_at=at)
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
        if stamp(at) == post["scheduledAt"]:
            return found_post.go(visit, status=f"The post has this time already: {said}")
        await rt.write_soon(post_versions.edit, post["id"], new.version, change)
    except InvalidRequest as error:
        # Behind the semicolon stands what a program can send instead.
        return _page(visit, post, new, f"The time {error.errors[0].message.partition(';')[0]}.")
    except ChangedMeanwhile:
        return _ask(visit, found_post.find(rt, visit).post, new)
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    return found_post.go(visit, status=f"The post is moved: {said}")


def _ask(visit: Visit, post: dict[str, Any], new: NewTime) -> Answer:
    """Both versions, and which of them is wanted."""
    return _show(visit, post, new, 409, post_versions.CHANGED_MEANWHILE, present=PostVersion.of(post))


def _page(visit: Visit, post: dict[str, Any], new: NewTime, error: str | None = None) -> Answer:
    problem = f"The post is not moved. {error}" if error else None
    return _show(visit, post, new, 400 if error else 200, problem, error=error)


def _show(
    visit: Visit,
    post: dict[str, Any],
    new: NewTime,
    http_status: int,
    problem: str | None,
    *,
    error: str | None = None,
    present: PostVersion | None = None,
) -> Answer:
    return visit.show(
        "reschedule.html",
        http_status=http_status,
        problem=problem,
        post=post,
        back=found_post.back(visit),
        new=new,
        error=error,
        present=present,
        words=post_words,
    )
