"""The log entries of a post share its text, and an edit keeps the former text for the earlier entries.

Existing entries keep their own text: rewriting millions of rows would make the upgrade slow.
"""

STATEMENTS = (
    "ALTER TABLE post ADD COLUMN text_version INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE log_entry ADD COLUMN text_version INTEGER",
    """CREATE TABLE former_text (post_id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT,
        PRIMARY KEY (post_id, version)) WITHOUT ROWID""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
