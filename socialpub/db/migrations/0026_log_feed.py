"""Finding a log entry by its id, so that a caller can continue after the last entry that it has read."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX log_entry_by_id ON log_entry (id)")
