"""Add an index for recent failures, which the dashboard shows first."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("CREATE INDEX delivery_failed ON delivery (failed_at) WHERE failed_at IS NOT NULL")
