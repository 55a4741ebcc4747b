"""Connect accounts through consent pages, and keep unused tokens alive.

An attempt to connect waits for one return of the browser. Only a hash of its state is stored, so the database's content
is not enough to answer. A profile has the instants of its last renewal and of its last warning.
"""

STATEMENTS = """
CREATE TABLE consent (
    id TEXT PRIMARY KEY, state_hash BLOB NOT NULL UNIQUE, provider TEXT NOT NULL, verifier BLOB NOT NULL,
    redirect_uri TEXT NOT NULL, name TEXT, expected_profile_id TEXT,
    created_at TEXT NOT NULL, expires_at TEXT NOT NULL,
    -- The browser came back: from here on the state is spent, whatever becomes of it.
    taken_at TEXT, finished_at TEXT,
    profile_id TEXT, revived INTEGER, missing TEXT,
    error TEXT, hint TEXT
) WITHOUT ROWID;
CREATE INDEX consent_age ON consent (created_at);
ALTER TABLE profile ADD COLUMN renewed_at TEXT;
ALTER TABLE profile ADD COLUMN warned_at TEXT;
UPDATE profile SET renewed_at = updated_at;
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
