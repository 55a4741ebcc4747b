"""Store whether a delivery failed because the network rejected the content, so that a retry would fail again.

The dashboard then suggests to edit the post. Earlier failures count as temporary.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE delivery ADD COLUMN content_refused INTEGER NOT NULL DEFAULT 0")
