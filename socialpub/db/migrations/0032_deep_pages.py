"""Find deep pages by counters by day, and time windows without reading posts. Know how far the log is out of order.

The log entries are in order of time unless the clock was set back. `log_order` has the time of the latest entry before
a later entry with an earlier time, and the largest such difference in seconds.
"""

import json

STATEMENTS = (
    """CREATE TABLE post_day (
        day TEXT NOT NULL, audience_id INTEGER NOT NULL, status TEXT NOT NULL, outcomes TEXT NOT NULL,
        posts INTEGER NOT NULL, PRIMARY KEY (day, audience_id, status, outcomes)
    ) WITHOUT ROWID""",
    """INSERT INTO post_day (day, audience_id, status, outcomes, posts)
        SELECT substr(created_at, 1, 10), audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3, 4""",
    "DROP INDEX post_scheduled",
    """CREATE INDEX post_scheduled ON post (scheduled_at, audience_id, status, outcomes, created_at, id)
        WHERE scheduled_at IS NOT NULL""",
)
DISORDER = """
SELECT max(latest), max(julianday(latest) - julianday(occurred_at)) * 86400
FROM (SELECT occurred_at, max(occurred_at) OVER (ORDER BY n) AS latest FROM log_entry) WHERE occurred_at < latest"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
    latest, seconds = db.execute_sql(DISORDER).fetchone()
    if latest is not None:
        state = json.dumps({"latest": latest, "behind": seconds + 1})
        db.execute_sql("INSERT INTO appliance (name, value) VALUES ('log_order', ?)", (state,))
