"""The key that created a post: a key with a limit changes only its own posts. And the names of open deliveries.

Only keys with a daily limit left a trace of their earlier posts. Open deliveries had the name of their profile at
acceptance, and have the present name from now on.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE post ADD COLUMN key_id TEXT")
    db.execute_sql(
        """UPDATE post SET key_id = (SELECT key_id FROM key_use WHERE post_id = post.id)
            WHERE id IN (SELECT post_id FROM key_use)"""
    )
    db.execute_sql(
        """UPDATE delivery SET profile_name = (SELECT name FROM profile p WHERE p.id = profile_id)
            WHERE state IN ('queued', 'running') AND EXISTS (SELECT 1 FROM profile p WHERE p.id = profile_id)"""
    )
