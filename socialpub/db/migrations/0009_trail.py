"""Add an audit log of changes by owners and commands.

Rows are only added. No trigger enforces this, because backups with triggers are rejected.
"""

STATEMENTS = (
    """CREATE TABLE trail (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
        subject_kind TEXT, subject_id TEXT, subject_label TEXT,
        -- Facts as a JSON object; a sentence is made of them where it is shown.
        detail TEXT NOT NULL DEFAULT '{}'
    )""",
    "CREATE INDEX trail_by_action ON trail (action, id)",
    # A restored backup of a former version had no audit log for its restore.
    """INSERT INTO trail (at, actor, action, subject_kind, detail)
        SELECT p.value, 'command', 'publishing.restored', 'appliance', json_object('copied_at', r.value)
        FROM appliance r JOIN appliance p ON p.name = 'paused_at' WHERE r.name = 'restored_from'""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
