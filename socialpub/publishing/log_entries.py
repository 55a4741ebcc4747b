"""Publishing logs: one entry per delivery and state, never more (spec 2.7, contract section 4)."""

from socialpub.core import ids
from socialpub.db.transaction import Tx

_RECORD = """
INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at, post_body,
    post_scheduled_at, profile_name, release_url, provider_post_id, error_message)
SELECT ?, d.id, d.post_id, d.profile_id, d.provider, ?, ?, p.body, d.scheduled_at, ifnull(a.name, d.profile_name),
    d.url, d.provider_post_id, d.error_message
FROM delivery d JOIN post p ON p.id = d.post_id LEFT JOIN profile a ON a.id = d.profile_id WHERE d.id = ?"""


def record(tx: Tx, delivery_id: str, type: str) -> None:
    """Write down that a delivery reached this state, with what it, its post and its profile are by now."""
    tx.execute(_RECORD, (ids.new(int(tx.now.timestamp() * 1000)), type, tx.stamp, delivery_id))
