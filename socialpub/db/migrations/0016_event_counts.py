"""Count attempts and token refreshes when they happen.

Rows of attempts may be removed, and a sum over a million rows takes seconds.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE event_count (
            event TEXT NOT NULL, provider TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL,
            count INTEGER NOT NULL, PRIMARY KEY (event, provider, kind, outcome)
        ) WITHOUT ROWID"""
    )
