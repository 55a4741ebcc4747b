"""The meaning of SQLite's errors, by their codes."""

import sqlite3
import traceback

from socialpub.core.errors import Unavailable, disk_full

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_TROUBLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
}


def primary_code(error: BaseException | None) -> int | None:
    """Return the primary code. None: the error is not from SQLite's library."""
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None
    return None if code is None else code & 0xFF


def is_trouble(error: BaseException) -> bool:
    """Return whether the disk or a lock is the cause, and not the statement."""
    return primary_code(error) in _TROUBLE


def as_unavailable(error: sqlite3.Error) -> Exception:
    """Return the error for the caller. Its cause is SQLite's error."""
    match primary_code(error) or primary_code(error.__cause__):
        case sqlite3.SQLITE_FULL:
            unavailable = disk_full()
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            unavailable = Unavailable("Another process has locked the database. Try again in a moment.")
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
            unavailable = Unavailable("The database cannot be written. Check the disk.", retry_after_seconds=60)
        case _:
            return error
    unavailable.__cause__ = error
    return unavailable


def find_damage(error: BaseException) -> str | None:
    """Return SQLite's message about damage. None: the error has another cause.

    The context of peewee's errors is SQLite's error. A damaged schema can make SQLite's message unreadable.
    """
    for cause in (error, error.__context__):
        if isinstance(cause, sqlite3.DatabaseError) and (primary_code(cause) in _DAMAGE or _is_undecodable(cause)):
            return str(cause)
        if isinstance(cause, UnicodeDecodeError) and _was_reading_rows(cause):
            return "text in it cannot be read"
    return None


def _is_undecodable(error: sqlite3.DatabaseError) -> bool:
    # For a text that is not UTF-8, Python raises an error without a code and a cause.
    return type(error) is sqlite3.OperationalError and primary_code(error) is None and error.__cause__ is None


def _was_reading_rows(error: UnicodeDecodeError) -> bool:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "execute" in (last.line or "") or "/socialpub/db/" in last.filename
