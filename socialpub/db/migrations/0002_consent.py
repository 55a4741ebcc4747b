"""Accounts are connected through the networks' own consent pages, and tokens that nobody uses are kept alive.

An attempt to connect waits for a browser that may come back once. Its state is stored as a hash only: whoever reads
the database cannot answer for the browser. Of a profile it is now known when its tokens were last renewed, and when its
owner was last told that something is to be done.
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
