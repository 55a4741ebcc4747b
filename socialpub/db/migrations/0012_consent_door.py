"""An attempt to connect knows where it was begun, so that its end names what can be done there and leads back."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE consent ADD COLUMN door TEXT NOT NULL DEFAULT 'shell'")
