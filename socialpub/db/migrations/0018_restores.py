"""Store the number of restores of the database at the acceptance or last change of a post.

After a restore, another installation may publish the posts of the backup. The number separates these posts from new
posts. A clock cannot separate them, because any clock may be wrong. Before a `resume`, all posts of a former version
count as posts of the backup.
"""

STATEMENTS = (
    "ALTER TABLE post ADD COLUMN restore_count INTEGER NOT NULL DEFAULT 0",
    """INSERT INTO appliance (name, value) SELECT 'restores', json_array(value) FROM appliance
        WHERE name = 'restored_from' ON CONFLICT DO NOTHING""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
