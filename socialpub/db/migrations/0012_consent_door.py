"""Store where an attempt to connect began, so that its end can lead back."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE consent ADD COLUMN door TEXT NOT NULL DEFAULT 'shell'")
