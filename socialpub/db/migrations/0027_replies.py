"""Store the delivery to which a delivery replies, and find the replies of a delivery.

`reply_to` is the first delivery of a post to an account. The retries of that delivery have its id in `retry_of`.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE delivery ADD COLUMN reply_to TEXT")
    db.execute_sql("CREATE INDEX delivery_replies ON delivery (reply_to) WHERE reply_to IS NOT NULL")
