"""A post names how many restores the database had gone through when the post was accepted or last changed.

After a restore, another installation may publish the posts that came with the backup. The number separates them from
the posts that the restored installation accepts itself. A clock cannot separate them, because any clock may be wrong.
A former version that waits for its `resume` did not count: all of its posts are taken for those of the backup.
"""

STATEMENTS = (
    "ALTER TABLE post ADD COLUMN restore_count INTEGER NOT NULL DEFAULT 0",
    """INSERT INTO appliance (name, value) SELECT 'restores', json_array(value) FROM appliance
        WHERE name = 'restored_from' ON CONFLICT DO NOTHING""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
