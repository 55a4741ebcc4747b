"""What can be done to a post from its page: canceled, published now, stopped. Each asks once more on a page of its own.

Who may no longer do it is led back, with the reason that the domain has for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from socialpub.accounts.api_keys import OWNER
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.models import State
from socialpub.publishing import deliveries, posts, retries
from socialpub.publishing.drafts import Change
from socialpub.publishing.post_details import DeliveryDetails, PostDetails
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import found_post, post_words
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

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
    details = found_post.find(rt, visit)
    consequences = ["It is sent to nobody, and stays in the list as canceled.", "This cannot be taken back."]
    return _ask(
        visit, details, lambda: _check_cancel(rt, details.post), "Cancel this post?", "Cancel post", consequences
    )


@page()
async def cancel(rt: Runtime, visit: Visit) -> Answer:
    """The post is canceled."""
    details = found_post.find(rt, visit)
    try:
        await rt.write_soon(posts.cancel, details.post["id"], OWNER)
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    return found_post.go(visit, status=f"Canceled: “{post_words.name(details.post)}” is not sent.")


# --- publish now -----------------------------------------------------------------------------------------------------


@page()
async def ask_publish(rt: Runtime, visit: Visit) -> Answer:
    """Where it would go at once."""
    details = found_post.find(rt, visit)
    consequences = [f"It goes out at once to {post_words.accounts(details.post['deliveries'])}."]
    if appliance_state.paused_at(rt.reader) is not None:
        consequences.append(PAUSED)
    return _ask(
        visit, details, lambda: _check_change(rt, details.post), "Publish this post now?", "Publish now", consequences
    )


@page()
async def publish(rt: Runtime, visit: Visit) -> Answer:
    """The post's time is now."""
    details = found_post.find(rt, visit)
    now = Change(given=frozenset({"scheduled_at"}), scheduled_at=None)
    try:
        await rt.write_soon(posts.edit, details.post["id"], now, OWNER)
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    return found_post.go(visit, status="The post goes out now.")


# --- stop ------------------------------------------------------------------------------------------------------------


@page()
async def ask_stop(rt: Runtime, visit: Visit) -> Answer:
    """What can still be stopped, and what is past its commit."""
    details = found_post.find(rt, visit)
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
    details = found_post.find(rt, visit)
    try:
        posts.check_stoppable(details.post["status"])
    except Conflict as error:
        return found_post.go(visit, alert=error.detail)
    states = await rt.write_soon(posts.stop, details.post["id"])
    going_on = [one for one in details.deliveries if not State(states[one.delivery.id]).final]
    said = "Stopped: nothing more of the post is sent."
    if going_on:
        accounts = post_words.accounts([one.shown for one in going_on])
        said += f" To {accounts} it may be out already: its outcome is still found out."
    return found_post.go(visit, status=said)


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
        return found_post.go(visit, alert=error.detail)
    return visit.show(
        "post_question.html",
        post=details.post,
        question=question,
        button=button,
        consequences=consequences,
        back=found_post.back(visit),
        words=post_words,
    )


def _when_stopped(rt: Runtime, details: DeliveryDetails) -> str:
    account = post_words.accounts([details.shown])
    if details.delivery.state.final:
        word = post_words.DELIVERY_STATES[details.outcome].text.lower()
        return f"{account}: {word} already; that stays as it is."
    if deliveries.may_be_sent(rt.reader, details.delivery, rt.stamp()):
        return (
            f"{account}: past its commit, so it may be out already. Its outcome is still found out; nothing is resent."
        )
    return f"{account}: not sent any more."
