"""What was done to one post is found without looking through the whole trail."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX trail_by_subject ON trail (subject_id, id)")
