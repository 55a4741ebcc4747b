"""The post that an address names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from socialpub.accounts import profiles
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, FieldError, InvalidRequest
from socialpub.db import appliance_state
from socialpub.db.connection import Row
from socialpub.db.states import State
from socialpub.providers.registry import LABELS
from socialpub.publishing.delivery import deliveries
from socialpub.publishing.posts import details as post_details
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.details import DeliveryDetails, PostDetails
from socialpub.publishing.posts.drafts import Change
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import forms, times
from socialpub.web.dashboard.browser.times import LocalTime
from socialpub.web.dashboard.browser.visit import Visit, no_such_page, page
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import KEEP, ChangedMeanwhile, PostVersion
from socialpub.web.http.answer import Answer


def load_post(rt: Runtime, visit: Visit) -> PostDetails:
    """Everything about it. Raises NotFound."""
    details = post_details.load_details(rt.reader, visit.params["postId"], rt.stamp())
    if details is None:
        raise no_such_page()
    return details


def return_path(visit: Visit) -> str:
    """Where an action leads afterwards: to the page of ours that led here (`?back=`, and a field of that name), else to
    the post."""
    asked = visit.form.text("back") or visit.query.text("back")
    return asked if forms.is_local(asked) else f"/posts/{visit.params['postId']}"


def go_back(visit: Visit, *, status: str | None = None, alert: str | None = None) -> Answer:
    """There, with what the action came to."""
    return visit.go(return_path(visit), status=status, alert=alert)


# MERGED from web/dashboard/post_actions.py: What can be done to a post from its page: canceled, published now, sto

PAUSED = "Publishing is paused: it goes out once you press “Resume” under System."


@dataclass(frozen=True, slots=True)
class PostActions:
    """Which actions apply to a post now."""

    cancel: bool
    change: bool
    stop: bool
    post_again: bool
    asks_first: bool
    """Before it is posted again: something of it may be public already."""
    change_first: bool
    """Whether the post itself was refused, so that only a changed one may pass."""


def applying(rt: Runtime, details: PostDetails) -> PostActions:
    """What can be done to it at this moment."""
    post, outlook = details.post, retries.outlook(rt.reader, details.post["id"])
    cancel = _passes(lambda: _check_cancel(rt, post))
    return PostActions(
        cancel=cancel,
        change=_passes(lambda: _check_change(rt, post)),
        stop=not cancel and _passes(lambda: posts.check_stoppable(post["status"])),
        post_again=outlook.may_pass,
        asks_first=bool(outlook.unknown),
        change_first=outlook.content_refused,
    )


# --- cancel ----------------------------------------------------------------------------------------------------------


@page()
async def ask_cancel(rt: Runtime, visit: Visit) -> Answer:
    """What canceling would mean."""
    details = load_post(rt, visit)
    consequences = ["It is sent to nobody, and stays in the list as canceled.", "This cannot be taken back."]
    return _ask(
        visit, details, lambda: _check_cancel(rt, details.post), "Cancel this post?", "Cancel post", consequences
    )


@page()
async def cancel(rt: Runtime, visit: Visit) -> Answer:
    """The post is canceled."""
    details = load_post(rt, visit)
    try:
        await rt.write_soon(posts.cancel, details.post["id"], OWNER)
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    return go_back(visit, status=f"Canceled: “{labels.name(details.post)}” is not sent.")


# --- publish now -----------------------------------------------------------------------------------------------------


@page()
async def ask_publish(rt: Runtime, visit: Visit) -> Answer:
    """Where it would go at once."""
    details = load_post(rt, visit)
    consequences = [f"It goes out at once to {labels.accounts(details.post['deliveries'])}."]
    if appliance_state.paused_at(rt.reader) is not None:
        consequences.append(PAUSED)
    return _ask(
        visit, details, lambda: _check_change(rt, details.post), "Publish this post now?", "Publish now", consequences
    )


@page()
async def publish(rt: Runtime, visit: Visit) -> Answer:
    """The post's time is now."""
    details = load_post(rt, visit)
    now = Change(given=frozenset({"scheduled_at"}), scheduled_at=None)
    try:
        await rt.write_soon(posts.edit, details.post["id"], now, OWNER)
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    return go_back(visit, status="The post goes out now.")


# --- stop ------------------------------------------------------------------------------------------------------------


@page()
async def ask_stop(rt: Runtime, visit: Visit) -> Answer:
    """What can still be stopped, and what is past its commit."""
    details = load_post(rt, visit)
    return _ask(
        visit,
        details,
        lambda: posts.check_stoppable(details.post["status"]),
        "Stop this post?",
        "Stop",
        [_when_stopped(rt, one) for one in details.deliveries],
    )


@page()
async def stop(rt: Runtime, visit: Visit) -> Answer:
    """Nothing more of the post is sent."""
    details = load_post(rt, visit)
    try:
        posts.check_stoppable(details.post["status"])
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    states = await rt.write_soon(posts.stop, details.post["id"])
    going_on = [one for one in details.deliveries if not State(states[one.delivery.id]).final]
    said = "Stopped: nothing more of the post is sent."
    if going_on:
        accounts = labels.accounts([one.shown for one in going_on])
        said += f" To {accounts} it may be out already: its outcome is still found out."
    return go_back(visit, status=said)


# --- inside ----------------------------------------------------------------------------------------------------------


def _check_cancel(rt: Runtime, post: dict[str, Any]) -> None:
    posts.check_cancelable(rt.reader, post["id"], rt.stamp())


def _check_change(rt: Runtime, post: dict[str, Any]) -> None:
    posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())


def _passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except Conflict:
        return False
    return True


def _ask(
    visit: Visit, details: PostDetails, check: Callable[[], None], question: str, button: str, consequences: list[str]
) -> Answer:
    try:
        check()
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    return visit.show(
        "post_question.html",
        post=details.post,
        question=question,
        button=button,
        consequences=consequences,
        back=return_path(visit),
        words=labels,
    )


def _when_stopped(rt: Runtime, details: DeliveryDetails) -> str:
    account = labels.accounts([details.shown])
    if details.delivery.state.final:
        word = labels.DELIVERY_STATES[details.outcome].text.lower()
        return f"{account}: {word} already; that stays as it is."
    if deliveries.may_be_sent(rt.reader, details.delivery, rt.stamp()):
        return (
            f"{account}: past its commit, so it may be out already. Its outcome is still found out; nothing is resent."
        )
    return f"{account}: not sent any more."


# MERGED from web/dashboard/post_again.py: `/posts/{postId}/again`: what failed of a post is published once more, b

UNTICKED = "Look at the account first. If the post is not there, tick this box; else there is nothing to do."
_SUBJECTS = {"profiles": "The account", "media": "The media", "providerOptions": "An option"}


@page()
async def ask_again(rt: Runtime, visit: Visit) -> Answer:
    """What would be published again, and the accounts to look at before."""
    details = load_post(rt, visit)
    outlook = retries.outlook(rt.reader, details.post["id"])
    if not outlook.certain and not outlook.unknown:
        return go_back(visit, alert=outlook.why)
    return _again_page(rt, visit, details, outlook)


@page()
async def publish_again(rt: Runtime, visit: Visit) -> Answer:
    """It is published again, and the new post is shown."""
    details = load_post(rt, visit)
    include_unknown = visit.form.ticked("includeUnknown")
    ticket = submissions.request_key(visit.form.text(submissions.FIELD) or submissions.new_id(), visit.path, [])
    kept = idempotency.find(rt, rt.reader, ticket, rt.now())
    if kept is not None:
        return visit.go(f"/posts/{kept.location}", status=submissions.SUBMITTED)
    outlook = retries.outlook(rt.reader, details.post["id"])
    if outlook.unknown and not outlook.certain and not include_unknown:
        return _again_page(rt, visit, details, outlook, UNTICKED)
    try:
        again = (retries.retry, details.post["id"], OWNER, include_unknown)
        new_id, is_new = await rt.write_soon(submissions.submit_once, ticket, *again)
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    except InvalidRequest as error:
        return go_back(visit, alert=f"It cannot be posted again. {' '.join(map(_sentence, error.errors))}")
    said = f"Posted again: this is the new post, {new_id}." if is_new else submissions.SUBMITTED
    return visit.go(f"/posts/{new_id}", status=said)


def _again_page(
    rt: Runtime, visit: Visit, details: PostDetails, outlook: RetryOutlook, error: str | None = None
) -> Answer:
    return visit.show(
        "post_again.html",
        http_status=400 if error else 200,
        problem=f"Nothing was posted again. {error}" if error else None,
        post=details.post,
        certain=[_account_link(rt, row) for row in outlook.certain],
        unknown=[_account_link(rt, row) for row in outlook.unknown],
        error=error,
        form_id=visit.form.text(submissions.FIELD) or submissions.new_id(),
        words=labels,
    )


def _account_link(rt: Runtime, delivery: Row) -> dict[str, str]:
    profile = profiles.find(rt.reader, delivery.profile_id)
    return {
        "network": LABELS[delivery.provider],
        "name": delivery.profile_name,
        "url": rt.providers[delivery.provider].account_url(profile.username if profile else None),
        "message": delivery.error_message or "",
    }


def _sentence(error: FieldError) -> str:
    subject = _SUBJECTS.get(str(error.path[0]), "It") if error.path else "It"
    return f"{subject} {error.message}."


# MERGED from web/dashboard/reschedule.py: `/posts/{id}/reschedule`: another time for a scheduled post. The calenda

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
async def reschedule_form(rt: Runtime, visit: Visit) -> Answer:
    """The field for the new time, with the present one in it, or with the one that the address names (`?at=`).

    The address may name the version that the new time was chosen for as well, and asks then."""
    post = load_post(rt, visit).post
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    present = PostVersion.of(post)
    value, which = times.of_query(visit.query.text("at") or post["scheduledAt"], visit.zone) or ("", "")
    chosen_for = PostVersion.read(visit.query) or present
    new = NewTime(value, which, chosen_for, times.read_local(value, visit.zone))
    return _reschedule_page(visit, post, new) if chosen_for.is_of(post) else _ask_version(visit, post, new)


@page()
async def reschedule(rt: Runtime, visit: Visit) -> Answer:
    """The post gets its new time, or the page says why it does not."""
    post = load_post(rt, visit).post
    if visit.form.text("do") == KEEP:
        return go_back(visit, status=submissions.KEPT)
    # The zone that the form showed: the browser's may be another one by now.
    visit.zone = times.zone_named(visit.form.text("zone")) if visit.form.text("zone") else visit.zone
    given, which = visit.form.text("at"), visit.form.text("which")
    local = times.read_local(given, visit.zone)
    new = NewTime(given, which, PostVersion.read(visit.form) or PostVersion.of(post), local)
    if local is None:
        return _reschedule_page(visit, post, new, NO_TIME)
    at = local.instant(which)
    if at is None:
        return _reschedule_page(visit, post, new, f"{local.complaint[0].upper()}{local.complaint[1:]}.")
    said = f"it goes out on {times.written(at, visit.zone)}."
    change = Change(given=frozenset({"scheduled_at"}), scheduled_at=at)
    try:
        posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())
        if stamp(at) == post["scheduledAt"]:
            return go_back(visit, status=f"The post has this time already: {said}")
        await rt.write_soon(submissions.edit_version, post["id"], new.version, change)
    except InvalidRequest as error:
        # Behind the semicolon stands what a program can send instead.
        return _reschedule_page(visit, post, new, f"The time {error.errors[0].message.partition(';')[0]}.")
    except ChangedMeanwhile:
        return _ask_version(visit, load_post(rt, visit).post, new)
    except Conflict as error:
        return go_back(visit, alert=error.detail)
    return go_back(visit, status=f"The post is moved: {said}")


def _ask_version(visit: Visit, post: dict[str, Any], new: NewTime) -> Answer:
    """Both versions, and which of them is wanted."""
    return _show_reschedule(visit, post, new, 409, submissions.CHANGED_MEANWHILE, present=PostVersion.of(post))


def _reschedule_page(visit: Visit, post: dict[str, Any], new: NewTime, error: str | None = None) -> Answer:
    problem = f"The post is not moved. {error}" if error else None
    return _show_reschedule(visit, post, new, 400 if error else 200, problem, error=error)


def _show_reschedule(
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
        back=return_path(visit),
        new=new,
        error=error,
        present=present,
        words=labels,
    )
