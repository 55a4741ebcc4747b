"""Store waits for a profile's own queue, which do not count against the deadline of a post.

The reason of a wait (the gap between two posts, or a long step of another post) is only known during the wait.
"""

STATEMENTS = """
CREATE TABLE own_wait (profile_id TEXT NOT NULL, kind TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL);
CREATE INDEX own_wait_of_profile ON own_wait (profile_id, until);
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
