"""Replies to our own posts (contract 10.7): a reply waits for the post to which it replies, its parent.

A retry of the parent replaces the parent. `delivery.reply_to` therefore has the id of the first delivery, and the
published retry counts, else the newest retry. The outcome of a parent only makes its direct replies due. Each reply
ends or starts in its own claim, so a long thread never settles in one transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.core.clock import after
from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow
from socialpub.db.states import Committing, Preparing, State
from socialpub.db.tables import delivery_rows
from socialpub.providers import options as option_tables
from socialpub.providers.base import Outcome, Refused, Wait
from socialpub.providers.registry import OPTIONS
from socialpub.runtime import Runtime

VISIBLE_SECONDS = 120.0
"""A network may refuse replies to a younger post, because not all of its servers know the post yet."""
ASK_AGAIN_SECONDS = 10.0

CREATE_AGAIN = "Create this post again without the reply, or as a reply to another post."


@dataclass(frozen=True, slots=True)
class Parent:
    """The delivery to which a delivery replies now."""

    post_id: str
    state: State
    published_at: str | None
    provider_post_id: str | None

    @property
    def is_published(self) -> bool:
        return self.state is State.PUBLISHED and self.provider_post_id is not None

    @property
    def outlook(self) -> str | None:
        """What this parent means for a new reply. None: the reply can be sent."""
        if self.is_published:
            return None
        if self.state.final:
            return (
                f"The post {self.post_id} is {self.state.outcome}. This reply fails unless a retry replaces that post."
            )
        return f"This reply waits until the post {self.post_id} is published."

    @property
    def end(self) -> str:
        """The reason why a reply to this parent is not sent, and the remedy."""
        first = f"Not sent: this post replies to the post {self.post_id}"
        match self.state:
            case State.CANCELED:
                return f"{first}, which was canceled. {CREATE_AGAIN}"
            case State.UNCONFIRMED:
                return f"{first}, whose outcome is unknown. Look at the account. Then retry that post and this post."
            case State.PUBLISHED:
                return f"{first}, whose id at the network is unknown. {CREATE_AGAIN}"
            case _:
                return f"{first}, which failed. Retry that post first, then retry this post."


REMOVED = f"Not sent: the post to which this post replies was removed. {CREATE_AGAIN}"


def find_parent(db: Database, reply_to: str | None) -> Parent | None:
    """Return the parent of a delivery with this `reply_to`. None: no reply, or the parent's rows were removed."""
    tries = [] if reply_to is None else delivery_rows.list_tries(db, reply_to)
    if not tries:
        return None
    row = max(tries, key=lambda row: (row.state == State.PUBLISHED, row.id))
    return Parent(row.post_id, State(row.state), row.published_at, row.provider_post_id)


def first_run_at(tx: Database, reply_to: str | None, due_at: str) -> str:
    """Return when a new or changed delivery runs: now if it ends with its parent, else at its time."""
    parent = find_parent(tx, reply_to)
    return tx.stamp if parent is not None and parent.state.final and not parent.is_published else due_at


def check_parent(tx: Database, delivery: Delivery) -> Refused | None:
    """Return why a reply ends with its parent. None: it can be sent, or is no reply.

    The lateness of a reply counts from the publication of its parent. A delivery that is read back for another
    installation does not need the parent.
    """
    phase = delivery.phase
    if delivery.reply_to is None or not (isinstance(phase, Preparing | Committing) or phase.is_uncalled):
        return None
    parent = find_parent(tx, delivery.reply_to)
    if parent is None:
        return Refused(REMOVED)
    if not parent.is_published:
        return Refused(parent.end) if parent.state.final else None
    # The clock may have been set since.
    age_seconds = clock_jumps.age_seconds(tx, tx.now, parent.published_at or tx.stamp)
    published_at = after(tx.stamp, -max(age_seconds, 0.0))
    if published_at > delivery.due_at:
        delivery.due_at = published_at
        tx.update(DeliveryRow, delivery.id, due_at=published_at)
    return None


def fill_in_parent(db: Database, delivery: Delivery, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the id of the published parent at the network, under the network's own option.

    Another installation may have published the reply under another post, such as its own retry of the parent. A
    read-back for that installation therefore searches for a reply to any post.
    """
    option = option_tables.find_post_option(OPTIONS.get(delivery.provider, ()))
    if option is None or option.name not in options or delivery.phase.restored:
        return dict(options)
    parent = find_parent(db, delivery.reply_to)
    return {**options, option.sent_as: parent.provider_post_id} if parent and parent.is_published else dict(options)


def wait_until_visible(rt: Runtime, tx: Database, delivery: Delivery, result: Outcome | Any) -> Outcome | Any:
    """Return a wait instead of the refusal of a reply whose parent the network may not show yet (contract 10.7.3)."""
    if not (isinstance(result, Refused) and result.parent_missing):
        return result
    parent = find_parent(tx, delivery.reply_to)
    if parent is None or parent.published_at is None:
        return result
    age = clock_jumps.age_seconds(tx, rt.now(), parent.published_at)
    return result if age > VISIBLE_SECONDS else Wait(ASK_AGAIN_SECONDS, result.message)
