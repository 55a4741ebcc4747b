"""The key that created a post: a key with a limit changes only its own posts.

Only keys with a daily limit left a trace of their earlier posts.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE post ADD COLUMN key_id TEXT")
    db.execute_sql(
        """UPDATE post SET key_id = (SELECT key_id FROM key_use WHERE post_id = post.id)
            WHERE id IN (SELECT post_id FROM key_use)"""
    )
