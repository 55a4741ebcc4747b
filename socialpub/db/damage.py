"""Telling a damaged database from one that is locked, missing or in the way."""

import sqlite3
import traceback

_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def of(error: BaseException) -> str | None:
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
