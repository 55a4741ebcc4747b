"""The actions on a post: approve, cancel, publish now, stop, post again, reschedule.

Each action asks for confirmation on its own page. If the action is not possible, the browser returns to the previous
page with the reason. `back` (in the URL, then in the form) is the page that shows the result.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
from starlette.responses import Response

from socialpub.accounts import tokens
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, FieldError, InvalidRequest
from socialpub.db import appliance_state
from socialpub.db.models import DeliveryRow
from socialpub.db.queries import api_json
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.providers.registry import LABELS
from socialpub.publishing.posts import details as post_details
from socialpub.publishing.posts import idempotency, posts, retries
from socialpub.publishing.posts.details import DeliveryDetails, PostDetails
from socialpub.publishing.posts.drafts import Draft
from socialpub.publishing.posts.retries import RetryOutlook
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import forms, times
from socialpub.web.dashboard.browser.times import LocalTime
from socialpub.web.dashboard.browser.visit import Visit, no_such_page, page
from socialpub.web.dashboard.posts import submissions
from socialpub.web.dashboard.posts.submissions import ChangedMeanwhile

Post = dict[str, Any]
"""A post as the API shows it."""

PAUSED = "Publishing is paused. The post is published after you press “Resume” under System."
UNAPPROVED = "The post is due now. It is published when you press “Approve” on its page."
UNTICKED = "Check the account first. If the post is not there, tick this box. Otherwise, no action is needed."
RESCHEDULE_AGAIN = "This is the post as it is now. To set your time, press “Reschedule” again."
NO_TIME = "Choose a date and a time, such as 2026-11-25 09:00."
_SUBJECTS = {"profiles": "The account", "media": "The media", "providerOptions": "An option"}


def load_post(rt: Runtime, post_id: str) -> Post:
    post_json = api_json.post(rt.db, post_id)
    if post_json is None:
        raise no_such_page()
    post: Post = orjson.loads(post_json)
    return post


def load_details(rt: Runtime, visit: Visit) -> PostDetails:
    details = post_details.load_details(rt, rt.db, visit.params["postId"])
    if details is None:
        raise no_such_page()
    return details


def check_changeable(rt: Runtime, post: Post) -> None:
    posts.check_changeable(post["status"], post.get("scheduledAt"), rt.stamp())


def list_actions(rt: Runtime, details: PostDetails) -> dict[str, bool]:
    """Return the possible actions.

    `asks_first`: a failed delivery may be public. `change_first`: networks refused the content. A post that waits for
    an approval has “Stop” instead of “Cancel post”.
    """
    post, waits = details.post, details.waits_for_approval
    outlook = retries.load_outlook(rt.db, post["id"])
    cancel = _passes(partial(posts.check_cancelable, rt.db, post["id"], rt.stamp()))
    return {
        "waits": waits,
        "approve": waits and not details.reads_card,
        "cancel": cancel and not waits,
        "change": _passes(partial(check_changeable, rt, post)),
        "stop": (waits or not cancel) and _passes(partial(posts.check_stoppable, post["status"])),
        "post_again": outlook.may_pass,
        "asks_first": bool(outlook.unknown),
        "change_first": outlook.content_refused,
    }


def _passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except Conflict:
        return False
    return True


def _return_path(visit: Visit) -> str:
    return forms.local_path(visit.form.text("back") or visit.query.text("back"), f"/posts/{visit.params['postId']}")


def _go_back(visit: Visit, *, status: str | None = None, alert: str | None = None) -> Response:
    return visit.go(_return_path(visit), status=status, alert=alert)


def _ask(
    visit: Visit, post: Post, check: Callable[[], None], question: str, button: str, consequences: list[str]
) -> Response:
    try:
        check()
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    return visit.show(
        "post_question.html",
        post=post,
        question=question,
        button=button,
        consequences=consequences,
        back=_return_path(visit),
    )


async def _act(visit: Visit, action: Awaitable[object], status: str) -> Response:
    try:
        await action
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    return _go_back(visit, status=status)


@page()
async def ask_cancel(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    consequences = ["The post is not published. It stays in the list as canceled.", "This cannot be undone."]
    check = partial(posts.check_cancelable, rt.db, post["id"], rt.stamp())
    return _ask(visit, post, check, "Cancel this post?", "Cancel post", consequences)


@page()
async def cancel(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    action = rt.write_soon(posts.cancel, post["id"], OWNER)
    return await _act(visit, action, f"Canceled. “{labels.title(post)}” will not be published.")


@page()
async def approve(rt: Runtime, visit: Visit) -> Response:
    """Approve the version of a post that the form shows."""
    post = load_post(rt, visit.params["postId"])
    try:
        waited = await rt.write_soon(posts.approve, post["id"], visit.form.text("version"))
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    if not waited:
        return _go_back(visit, status="The post does not wait for an approval.")
    at = post.get("scheduledAt", "")
    when = f"on {visit.written(at)}" if at > rt.stamp() else "now"
    if load_details(rt, visit).waits_for_post:
        when = "after the post to which it replies"
    paused = f" {PAUSED}" if appliance_state.paused_at(rt.db) is not None else ""
    return _go_back(visit, status=f"Approved. The post is published {when}.{paused}")


@page()
async def ask_publish(rt: Runtime, visit: Visit) -> Response:
    details = load_details(rt, visit)
    post = details.post
    consequences = [f"The post is published now to {labels.list_accounts(post['deliveries'])}."]
    if details.waits_for_approval:
        consequences = [UNAPPROVED]
    if appliance_state.paused_at(rt.db) is not None:
        consequences.append(PAUSED)
    return _ask(visit, post, partial(check_changeable, rt, post), "Publish this post now?", "Publish now", consequences)


@page()
async def publish(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    now = Draft.change(scheduled_at=None)
    status = UNAPPROVED if load_details(rt, visit).waits_for_approval else "The post is being published."
    return await _act(visit, rt.write_soon(posts.edit, post["id"], now, OWNER), status)


@page()
async def ask_stop(rt: Runtime, visit: Visit) -> Response:
    details = load_details(rt, visit)
    consequences = [_when_stopped(rt, delivery) for delivery in details.deliveries]
    check = partial(posts.check_stoppable, details.post["status"])
    return _ask(visit, details.post, check, "Stop this post?", "Stop", consequences)


@page()
async def stop(rt: Runtime, visit: Visit) -> Response:
    details = load_details(rt, visit)
    try:
        posts.check_stoppable(details.post["status"])
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    states = await rt.write_soon(posts.stop, details.post["id"])
    going_on = [delivery for delivery in details.deliveries if not State(states[delivery.delivery.id]).final]
    status = "Stopped. Nothing more of this post is sent."
    if going_on:
        accounts = labels.list_accounts([delivery.shown for delivery in going_on])
        status += f" It may already be public on {accounts}. socialpub still checks the outcome."
    return _go_back(visit, status=status)


def _when_stopped(rt: Runtime, details: DeliveryDetails) -> str:
    account = labels.list_accounts([details.shown])
    if details.delivery.state.final:
        word = labels.DELIVERY_STATES[details.outcome].text.lower()
        return f"{account}: {word}. This does not change."
    if posts.may_be_sent(rt.db, details.delivery, rt.stamp()):
        return f"{account}: already sent, so it may be public. socialpub checks the outcome and does not send it again."
    return f"{account}: will not be sent."


@page()
async def ask_again(rt: Runtime, visit: Visit) -> Response:
    """Ask before a new post replaces the failed deliveries.

    A delivery with an unknown outcome may be public, so the owner must tick it.
    """
    post = load_post(rt, visit.params["postId"])
    outlook = retries.load_outlook(rt.db, post["id"])
    if not outlook.certain and not outlook.unknown:
        return _go_back(visit, alert=outlook.why)
    return _again_page(rt, visit, post, outlook)


@page()
async def publish_again(rt: Runtime, visit: Visit) -> Response:
    post = load_post(rt, visit.params["postId"])
    include_unknown = visit.form.ticked("includeUnknown")
    form_id = visit.form.text(submissions.FIELD) or submissions.new_id()
    key = submissions.request_key(form_id, visit.path, [])
    stored = idempotency.find(rt.db, key, rt.now())
    if stored is not None:
        return visit.go(f"/posts/{stored.location}", status=submissions.SUBMITTED)
    outlook = retries.load_outlook(rt.db, post["id"])
    if outlook.unknown and not outlook.certain and not include_unknown:
        return _again_page(rt, visit, post, outlook, UNTICKED)
    try:
        new_id, is_new = await rt.write_soon(submissions.submit_retry, key, post["id"], include_unknown)
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    except InvalidRequest as error:
        return _go_back(visit, alert=f"This post cannot be posted again. {' '.join(map(_sentence, error.errors))}")
    status = f"Posted again. This is the new post, {new_id}." if is_new else submissions.SUBMITTED
    return visit.go(f"/posts/{new_id}", status=status)


def _again_page(rt: Runtime, visit: Visit, post: Post, outlook: RetryOutlook, error: str | None = None) -> Response:
    return visit.show(
        "post_again.html",
        http_status=400 if error else 200,
        problem=f"No new post was created. {error}" if error else None,
        post=post,
        certain=[_account_link(rt, row) for row in outlook.certain],
        unknown=[_account_link(rt, row) for row in outlook.unknown],
        error=error,
        form_id=visit.form.text(submissions.FIELD) or submissions.new_id(),
    )


def _account_link(rt: Runtime, delivery: DeliveryRow) -> dict[str, str]:
    profile = profile_rows.find(rt.db, delivery.profile_id)
    return {
        "network": LABELS[delivery.provider],
        "name": delivery.profile_name,
        "url": rt.providers[delivery.provider].account_url(tokens.to_account(profile) if profile else None),
        "message": delivery.error_message or "",
    }


def _sentence(error: FieldError) -> str:
    subject = _SUBJECTS.get(str(error.path[0]), "It") if error.path else "It"
    return f"{subject} {error.message}."


@dataclass(frozen=True, slots=True)
class NewTime:
    """The fields of the form. `version` is the version of the post that the form shows."""

    value: str
    which: str
    version: str
    local: LocalTime | None


@page()
async def reschedule_form(rt: Runtime, visit: Visit) -> Response:
    """Show the form with the current time or the time in the URL (`?at=`).

    The URL can contain the version of the post. The page says whether the post was changed since then.
    """
    post = load_post(rt, visit.params["postId"])
    try:
        check_changeable(rt, post)
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    value, which = times.read_query_time(visit.query.text("at") or post["scheduledAt"], visit.zone) or ("", "")
    new = NewTime(value, which, post["updatedAt"], times.read_local(value, visit.zone))
    if visit.query.text(submissions.VERSION_FIELD) not in ("", new.version):
        return _show_changed(visit, post, new)
    return _show_time(visit, post, new)


@page()
async def reschedule(rt: Runtime, visit: Visit) -> Response:
    """Set the new time. The calendar's script sends the same form."""
    post = load_post(rt, visit.params["postId"])
    # The zone of the form, because the zone of the browser may have changed.
    visit.zone = times.find_zone(visit.form.text("zone")) if visit.form.text("zone") else visit.zone
    text, which = visit.form.text("at"), visit.form.text("which")
    local = times.read_local(text, visit.zone)
    new = NewTime(text, which, visit.form.text(submissions.VERSION_FIELD) or post["updatedAt"], local)
    if local is None:
        return _show_time(visit, post, new, NO_TIME)
    at = local.instant(which)
    if at is None:
        return _show_time(visit, post, new, f"{local.problem[0].upper()}{local.problem[1:]}.")
    new_time = times.format_time(at, visit.zone)
    change = Draft.change(scheduled_at=at)
    try:
        check_changeable(rt, post)
        if stamp(at) == post["scheduledAt"]:
            return _go_back(visit, status=f"The post already has this time: {new_time}.")
        await rt.write_soon(submissions.edit_version, post["id"], new.version, change)
    except InvalidRequest as error:
        # The second part of the message is for programs.
        return _show_time(visit, post, new, f"The time {error.errors[0].message.partition(';')[0]}.")
    except ChangedMeanwhile:
        post = load_post(rt, post["id"])
        return _show_changed(visit, post, replace(new, version=post["updatedAt"]))
    except Conflict as error:
        return _go_back(visit, alert=error.detail)
    return _go_back(visit, status=f"The post is rescheduled to {new_time}.")


def _show_changed(visit: Visit, post: Post, new: NewTime) -> Response:
    """Show the changed post with the owner's time."""
    return _show_time(visit, post, new, problem=f"{submissions.CHANGED_MEANWHILE} {RESCHEDULE_AGAIN}", http_status=409)


def _show_time(
    visit: Visit,
    post: Post,
    new: NewTime,
    error: str | None = None,
    *,
    problem: str | None = None,
    http_status: int = 200,
) -> Response:
    return visit.show(
        "reschedule.html",
        http_status=400 if error else http_status,
        problem=f"The post is not rescheduled. {error}" if error else problem,
        post=post,
        back=_return_path(visit),
        new=new,
        error=error,
    )
