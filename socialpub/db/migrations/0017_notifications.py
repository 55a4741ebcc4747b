"""Store alerts, messages, and the last sent message of each service.

One transaction stores a message and marks its alerts as sent. If a process dies, at most the current message is sent
again.
"""

STATEMENTS = (
    """CREATE TABLE told_cause (
        key TEXT PRIMARY KEY, subject TEXT NOT NULL, kind TEXT NOT NULL, sentence TEXT NOT NULL,
        passes INTEGER NOT NULL, since TEXT NOT NULL, told_at TEXT, ended_at TEXT,
        returns INTEGER NOT NULL, held_back INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE notification (id INTEGER PRIMARY KEY, at TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL)",
    """CREATE TABLE notification_service (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, sent_through INTEGER NOT NULL, sent_at TEXT,
        failing_since TEXT, tries INTEGER NOT NULL DEFAULT 0, next_at TEXT, failure TEXT,
        sent INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
