"""Attempts and token refreshes are counted when they happen.

Rows of attempts may be removed one day, and adding a million of them up at every scrape would take seconds.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE event_count (
            event TEXT NOT NULL, provider TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL,
            count INTEGER NOT NULL, PRIMARY KEY (event, provider, kind, outcome)
        ) WITHOUT ROWID"""
    )
