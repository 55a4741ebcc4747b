"""Store the account's own name, and when the account data of a profile was last fetched.

Before, the data was fetched only when the account was connected: an account with a new X Premium kept the limit of 280
characters. A profile without an instant is due at once. A profile's name follows the account's name until the owner
changes it. For profiles of former versions, it is unknown whether the owner has changed it.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE profile ADD COLUMN account_name TEXT")
    db.execute_sql("ALTER TABLE profile ADD COLUMN account_read_at TEXT")
