"""Store since when an artifact is unused, and count the stored bytes at each change.

Without the instant, an artifact of a removed post counted as unused since its verification. A quota check must not add
all files.
"""

STATEMENTS = (
    "ALTER TABLE artifact ADD COLUMN dropped_at TEXT",
    "CREATE TABLE stored_media (files INTEGER NOT NULL, size_bytes INTEGER NOT NULL)",
    """INSERT INTO stored_media SELECT count(*), coalesce(sum(declared_bytes), 0) FROM artifact
        WHERE storage_key IS NOT NULL""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
