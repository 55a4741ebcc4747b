"""Store the network's labels for values of options, such as boards.

A post has the id of its board, and its page shows the name without a call to the network.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(
        """CREATE TABLE choice_label (
            profile_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, label TEXT NOT NULL,
            PRIMARY KEY (profile_id, key, value)
        ) WITHOUT ROWID"""
    )
