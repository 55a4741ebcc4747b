"""Count the posts of a time window with narrow indexes: the times of all posts, and those of each group of posts."""

STATEMENTS = (
    "CREATE INDEX post_all_times ON post (scheduled_at) WHERE scheduled_at IS NOT NULL",
    """CREATE INDEX post_times ON post (audience_id, status, outcomes, scheduled_at)
        WHERE scheduled_at IS NOT NULL""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
