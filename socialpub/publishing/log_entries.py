"""Publishing logs: one entry per delivery and state, never more (spec 2.7, contract section 4)."""

from socialpub.core import ids
from socialpub.db.transaction import AT_ONCE, Reader, Tx

_RECORD = """
INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at, post_body,
    post_scheduled_at, profile_name, release_url, provider_post_id, error_message)
SELECT ?, d.id, d.post_id, d.profile_id, d.provider, ?, ?, p.body, d.scheduled_at, ifnull(a.name, d.profile_name),
    d.url, d.provider_post_id, d.error_message
FROM delivery d JOIN post p ON p.id = d.post_id LEFT JOIN profile a ON a.id = d.profile_id WHERE d.id = ?"""


def record(tx: Tx, delivery_id: str, type: str) -> None:
    """Write down that a delivery reached this state, with what it, its post and its profile are by now."""
    tx.execute(_RECORD, (ids.new(int(tx.now.timestamp() * 1000)), type, tx.stamp, delivery_id))


def oldest_beyond(reader: Reader, number: int) -> tuple[int, str] | None:
    """The next entries beyond this one: the number of the last of them, and when the oldest of them was written."""
    row = reader.one(
        """SELECT max(n) AS last, min(occurred_at) AS oldest
            FROM (SELECT n, occurred_at FROM log_entry WHERE n > ? ORDER BY n LIMIT ?)""",
        (number, AT_ONCE),
    )
    return None if row is None or row["last"] is None else (row["last"], row["oldest"])


def delete_over(tx: Tx, beyond: int, last: int, before: str) -> int:
    """Remove those of these that are as old as that and belong to no open post; how many. An entry without a post is
    one whose post was removed, and goes at any age. The newest stays: its number says how far the log has come, and is
    not given twice."""
    return tx.execute(
        """DELETE FROM log_entry WHERE n > ? AND n <= ? AND n < (SELECT max(n) FROM log_entry) AND (
            NOT EXISTS (SELECT 1 FROM post p WHERE p.id = log_entry.post_id)
            OR occurred_at <= ? AND EXISTS (
                SELECT 1 FROM post p WHERE p.id = log_entry.post_id AND p.status IN ('settled', 'canceled')))""",
        (beyond, last, before),
    ).rowcount
