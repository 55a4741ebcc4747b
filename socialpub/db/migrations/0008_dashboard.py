"""The dashboard: browsers that are signed in, and links that let one in once.

Of what a browser holds only a digest is stored: whoever reads the database cannot sign in with it. Both belong to this
installation: a copy restored elsewhere has another instance id, and lets in nobody whom its original knew.
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
