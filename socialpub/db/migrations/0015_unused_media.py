"""An artifact knows since when no post uses it, and what media take is counted where it changes.

A file that a post let go of counted as unused since it was verified: it could go within the hour. And a quota must not
add up all files for each that arrives.
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
