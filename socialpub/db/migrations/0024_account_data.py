"""When the account data of a profile was last fetched, and the account's own name.

The data (handle, name, picture, what the account may post) was fetched once, when the account was connected, and went
stale: an account that got X Premium later was still held to 280 characters. A profile that no fetch is known of is due
at once. The label of a profile follows the account's name as long as its owner has not changed the label; for
profiles of older versions it is not known whether they have.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE profile ADD COLUMN account_name TEXT")
    db.execute_sql("ALTER TABLE profile ADD COLUMN account_read_at TEXT")
