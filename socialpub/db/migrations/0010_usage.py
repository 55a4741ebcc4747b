"""Count requests, calls and outcomes by day, key and network."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE usage (
            day TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
            PRIMARY KEY (day, kind, name)
        ) WITHOUT ROWID"""
    )
