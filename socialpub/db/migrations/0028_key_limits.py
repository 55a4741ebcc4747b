"""Limits of API keys for agents: a number of posts a day, and the owner's approval.

`key_use` has a row for each post that a key with a daily limit created. Other keys write no rows.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE api_key ADD COLUMN posts_per_day INTEGER")
    db.execute_sql("ALTER TABLE api_key ADD COLUMN approval INTEGER NOT NULL DEFAULT 0")
    db.execute_sql(
        """CREATE TABLE key_use (key_id TEXT NOT NULL, accepted_at TEXT NOT NULL, post_id TEXT NOT NULL,
            profiles INTEGER NOT NULL, PRIMARY KEY (key_id, accepted_at, post_id)) WITHOUT ROWID"""
    )
