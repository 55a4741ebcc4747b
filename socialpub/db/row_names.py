"""Names in rows that become names of files: of locks, of marks, of media. A database that somebody else made may hold
any text there, and one such as `../../x` would lead elsewhere."""

from socialpub.db.transaction import Reader

_NAMES = {
    ("profile", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("delivery", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("artifact", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("delivery", "owner"): "? GLOB '*[^A-Za-z0-9_-]*'",
    ("idempotency", "owner"): "? GLOB '*[^A-Za-z0-9_-]*'",
}
"""Table and column, and what would be no id, or no name of a process."""


def stray(reader: Reader) -> str | None:
    """What stands in one of these places and is none of ours; None when all is as it must be."""
    for (table, column), wrong in _NAMES.items():
        found = reader.value(
            f"""SELECT quote({column}) FROM {table} WHERE {column} IS NOT NULL
                AND (typeof({column}) <> 'text' OR {wrong.replace("?", column)}) LIMIT 1"""
        )
        if found is not None:
            return f"{table}.{column} = {found}"
    return None
