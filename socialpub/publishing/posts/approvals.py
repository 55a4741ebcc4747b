"""The wait of a post for the owner's approval (contract 10.3).

The posts of a key with approval wait, and so do the posts that such a key changes or retries. Only `approve` ends the
wait. The claim of a waiting delivery never starts the delivery. It ends the delivery when the deadline is over.
"""

from socialpub.accounts.api_keys import Caller
from socialpub.core import logging
from socialpub.core.errors import Conflict
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow
from socialpub.db.tables import delivery_rows, waits
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.providers.base import LINK_CARD, Content, Memo
from socialpub.publishing.delivery import waiting
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.media.link_pages import LinkFetcher
from socialpub.publishing.posts import content as post_content
from socialpub.runtime import Runtime

log = logging.get_logger(__name__)

APPROVED = "The owner approved this post."
WAITS = "Waits for the owner's approval: "
"""The beginning of the message of such a wait. The URL of the post follows."""


def update(rt: Runtime, tx: Database, post_id: str, caller: Caller) -> None:
    """Make a post wait that the caller created or changed.

    If the key of the caller needs approval, the post waits even if its earlier version was approved. Otherwise, only a
    waiting post keeps waiting.
    """
    content: Content | None = None
    for delivery in delivery_rows.list_open_of_post(tx, post_id):
        if not waits.is_unapproved(tx, delivery.id):
            if not caller.approval:
                continue
            message = f"{WAITS}{rt.settings.base_url}/posts/{post_id}"
            waits.require_approval(tx, delivery.id, message, caller.name)
        content = content or post_content.load_content(rt, tx, post_id)
        _expect_card(rt, delivery, content)
        delivery_rows.store(tx, delivery)


def approve(rt: Runtime, tx: Database, post_id: str) -> None:
    """End the wait of a post. Raises Conflict after the deadline.

    The lateness of a post that is approved after its time counts from the approval.
    """
    unapproved = [
        open_delivery
        for open_delivery in delivery_rows.list_open_of_post(tx, post_id)
        if waits.is_unapproved(tx, open_delivery.id)
    ]
    if any(waiting.approval_deadline(rt, delivery.due_at) < tx.now for delivery in unapproved):
        raise Conflict(f"Too late: {waiting.not_approved(rt)}")
    for delivery in unapproved:
        waits.forget(tx, delivery.id)
        due_at = max(delivery.due_at, tx.stamp)
        Settlement(rt, tx, delivery).record_attempt(AttemptOutcome.DONE, APPROVED)
        tx.update(DeliveryRow, delivery.id, due_at=due_at, run_at=due_at)
        if due_at <= tx.stamp:
            tx.call_after_commit(rt.wakeup.notify, delivery.provider, delivery.profile_id)


# --- link cards ------------------------------------------------------------------------------------------------------
#
# A link card shows the words of a foreign page, which may change at any time. So the worker reads the page while the
# post waits, the owner approves the card with the post, and this card is sent.


def _expect_card(rt: Runtime, delivery: Delivery, content: Content) -> None:
    """Let the worker read the page of a link, unless it has read this link."""
    provider = rt.providers[delivery.provider]
    link = provider.card_link(content, provider.read_options(delivery.options)[0])
    if link != delivery.memo.get(LINK_CARD, {}).get("uri"):
        others = {name: value for name, value in delivery.memo.items() if name != LINK_CARD}
        delivery.memo = others if link is None else {**others, LINK_CARD: {"uri": link, "unread": True}}


def read_cards(rt: Runtime) -> None:
    """Read the pages of link cards in posts that wait for an approval, oldest first."""
    for delivery_id in delivery_rows.list_unread_cards(rt.db):
        delivery = delivery_rows.find(rt.db, delivery_id)
        if rt.stopping.is_set() or delivery is None or LINK_CARD not in delivery.memo:
            return
        links, link = LinkFetcher(rt, delivery.id), delivery.memo[LINK_CARD]["uri"]
        try:
            card = rt.providers[delivery.provider].read_card(link, links.fetch, links.fetch_image)
        except Exception:
            # The post could never be approved.
            log.error("the page of a link card could not be read", exc_info=True, delivery_id=delivery.id)
            card = {"uri": link, "note": "The post has no link card. The page could not be read."}
        rt.write(_store_card, delivery.id, card)


def _store_card(rt: Runtime, tx: Database, delivery_id: str, card: Memo) -> None:
    """Store the card, unless the post has another link now."""
    delivery = delivery_rows.find(tx, delivery_id)
    if delivery is not None and delivery.memo.get(LINK_CARD) == {"uri": card["uri"], "unread": True}:
        tx.update(DeliveryRow, delivery_id, memo=delivery_rows.as_json({**delivery.memo, LINK_CARD: card}))
