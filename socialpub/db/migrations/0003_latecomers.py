"""Add an index for published deliveries without an id, because they are read back every few seconds."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE INDEX delivery_without_id ON delivery (published_at)
            WHERE state = 'published' AND provider_post_id IS NULL"""
    )
