"""Posts that are up and whose id the network has not told yet are looked for every few seconds: they have an index."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE INDEX delivery_without_id ON delivery (published_at)
            WHERE state = 'published' AND provider_post_id IS NULL"""
    )
