"""What each key and network used, day by day: requests, calls, and what became of deliveries."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE usage (
            day TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
            PRIMARY KEY (day, kind, name)
        ) WITHOUT ROWID"""
    )
