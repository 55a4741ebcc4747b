"""Add an index for the audit log of one post."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX trail_by_subject ON trail (subject_id, id)")
