"""Add indexes for failed and canceled log entries, and for messages.

Most entries are published without a message and are in neither index.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX log_entry_rare ON log_entry (type, n) WHERE type IN ('failed', 'canceled')")
    db.execute_sql("CREATE INDEX log_entry_message ON log_entry (n, error_message) WHERE error_message IS NOT NULL")
