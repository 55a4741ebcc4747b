"""Times in which posts of a profile waited for the profile's own queue: no deadline of a post counts them.

A delivery that waits for the gap between two posts, or for a long step of another post, is not late because of its
network or because socialpub was down. The reason is known only while it waits, so the times are written down.
"""

STATEMENTS = """
CREATE TABLE own_wait (profile_id TEXT NOT NULL, kind TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL);
CREATE INDEX own_wait_of_profile ON own_wait (profile_id, until);
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
