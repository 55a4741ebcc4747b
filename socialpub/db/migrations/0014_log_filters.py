"""The log's rare entries, those that failed or were canceled, and its messages are found without reading all entries.

What is published without a message, nearly all of it, is in neither index and pays for none.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX log_entry_rare ON log_entry (type, n) WHERE type IN ('failed', 'canceled')")
    db.execute_sql("CREATE INDEX log_entry_message ON log_entry (n, error_message) WHERE error_message IS NOT NULL")
