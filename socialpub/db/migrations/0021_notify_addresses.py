"""Store URLs for notifications that the owner adds in the dashboard, in addition to `[notify] urls`.

A URL contains a password, so it is sealed. `name` contains only its scheme and host.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE notify_address (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, url BLOB NOT NULL, added_at TEXT NOT NULL
        ) WITHOUT ROWID"""
    )
