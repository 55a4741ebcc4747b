"""What a network calls the values that an account can choose, such as its boards: kept from the last list.

A post names its board by an id of 19 digits. Its page shows the name without a call to the network.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE choice_label (
            profile_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, label TEXT NOT NULL,
            PRIMARY KEY (profile_id, key, value)
        ) WITHOUT ROWID"""
    )
