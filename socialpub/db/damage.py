"""Damaged databases, and names in rows that are not ours."""

import sqlite3
import traceback

from socialpub.db.connection import Reader

_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def found_in(error: BaseException) -> str | None:
    """What is damaged, as SQLite says it; None when this error is about something else.

    peewee raises classes of its own, in whose context stands SQLite's. A damaged schema can also make SQLite's own
    message unreadable.
    """
    for one in (error, error.__context__):
        if isinstance(one, sqlite3.DatabaseError) and _code(one) in _CODES:
            return str(one)
        if isinstance(one, UnicodeDecodeError) and _was_reading_rows(one):
            return "text in it cannot be read"
    return None


def _code(error: sqlite3.Error) -> int:
    """The primary code; a text that is no UTF-8 comes without one."""
    code = getattr(error, "sqlite_errorcode", None)
    return sqlite3.SQLITE_CORRUPT if code is None and "decode" in str(error) else (code or 0) & 0xFF


def _was_reading_rows(error: UnicodeDecodeError) -> bool:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "execute" in (last.line or "") or "/socialpub/db/" in last.filename


_NAMES = {
    ("profile", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("delivery", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("artifact", "id"): "length(?) <> 36 OR ? GLOB '*[^0-9a-f-]*'",
    ("delivery", "owner"): "? GLOB '*[^A-Za-z0-9_-]*'",
    ("idempotency", "owner"): "? GLOB '*[^A-Za-z0-9_-]*'",
}
"""Table and column, and what would be no id, or no name of a process."""


def foreign_name(reader: Reader) -> str | None:
    """What stands in one of these places and is none of ours; None when all is as it must be."""
    for (table, column), wrong in _NAMES.items():
        found = reader.value(
            f"""SELECT quote({column}) FROM {table} WHERE {column} IS NOT NULL
                AND (typeof({column}) <> 'text' OR {wrong.replace("?", column)}) LIMIT 1"""
        )
        if found is not None:
            return f"{table}.{column} = {found}"
    return None
