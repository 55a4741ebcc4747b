"""Find the posts that wait for the owner's approval."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE INDEX delivery_unapproved ON delivery (post_id)
            WHERE state = 'queued' AND json_extract(progress, '$.phase') = 'waiting_for_approval'"""
    )
