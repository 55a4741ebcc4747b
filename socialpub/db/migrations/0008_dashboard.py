"""Add sessions and sign-in links for the dashboard.

Only digests are stored, so the database's content is not enough to sign in. Both belong to one instance id, so they are
not valid in a backup that is restored elsewhere.
"""

STATEMENTS = """
CREATE TABLE session (
    id TEXT PRIMARY KEY, token_hash BLOB NOT NULL UNIQUE, instance_id TEXT NOT NULL,
    created_at TEXT NOT NULL, last_seen_at TEXT NOT NULL, address TEXT NOT NULL, user_agent TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sign_in_link (
    token_hash BLOB PRIMARY KEY, instance_id TEXT NOT NULL, purpose TEXT NOT NULL, created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
