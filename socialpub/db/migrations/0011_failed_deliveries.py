"""What failed lately is shown to the owner first: failed deliveries have an index by when they did."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX delivery_failed ON delivery (failed_at) WHERE failed_at IS NOT NULL")
