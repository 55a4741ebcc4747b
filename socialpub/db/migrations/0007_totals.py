"""Add totals over all audiences: posts by status, and ended deliveries by network and outcome.

There can be nearly as many counters by audience and outcomes as posts. Queries without a filter and /metrics must not
add all of them.
"""

STATEMENTS = """
CREATE TABLE post_count (status TEXT PRIMARY KEY, posts INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO post_count SELECT value, (SELECT count(*) FROM post WHERE status = value)
    FROM json_each('["pending","scheduled","settled","canceled"]');

CREATE TABLE delivery_count (
    provider TEXT NOT NULL, outcome TEXT NOT NULL, deliveries INTEGER NOT NULL, PRIMARY KEY (provider, outcome)
) WITHOUT ROWID;
INSERT INTO delivery_count
    SELECT provider, CASE state WHEN 'unconfirmed' THEN 'unknown' ELSE state END, count(*)
    FROM delivery WHERE state NOT IN ('queued', 'running') GROUP BY 1, 2;
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
