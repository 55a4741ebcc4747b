"""Addresses for notifications that the owner adds in the dashboard, beside `[notify] urls` of the configuration.

An address holds a password, so it is sealed like a token. `name` shows no more of it than its scheme and its host.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE notify_address (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, url BLOB NOT NULL, added_at TEXT NOT NULL
        ) WITHOUT ROWID"""
    )
