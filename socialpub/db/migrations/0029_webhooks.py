"""Store the addresses that get events, and the log entry that ends a post.

A webhook has a position in the log (`sent_through`), so an event is neither lost nor stored twice. The URL and the
secret are sealed. `name` is the scheme and the host of the URL.
"""

STATEMENTS = (
    """CREATE TABLE webhook (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, url BLOB NOT NULL, secret BLOB NOT NULL, events TEXT NOT NULL,
        added_at TEXT NOT NULL, sent_through INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, next_at TEXT,
        failing_since TEXT, last_response TEXT, last_response_at TEXT, accepted INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0, left_out INTEGER NOT NULL DEFAULT 0, left_out_at TEXT, disabled_at TEXT
    ) WITHOUT ROWID""",
    "ALTER TABLE log_entry ADD COLUMN ends_post INTEGER NOT NULL DEFAULT 0",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
