"""Rows that a test reads with SQL text."""

import sqlite3
from typing import Any

from socialpub.db.connection import Database, Params


class Row(sqlite3.Row):
    """A row whose columns are attributes."""

    __slots__ = ()

    def __getattr__(self, column: str) -> Any:
        try:
            return self[column]
        except IndexError:
            raise AttributeError(column) from None


def select_all(db: Database, sql: str, params: Params = ()) -> list[Row]:
    cursor = db.connection().cursor()
    cursor.row_factory = Row
    return cursor.execute(sql, params).fetchall()


def select_one(db: Database, sql: str, params: Params = ()) -> Row | None:
    return next(iter(select_all(db, sql, params)), None)


def select_value(db: Database, sql: str, params: Params = ()) -> Any:
    """The first column of the first row, or None."""
    row = select_one(db, sql, params)
    return None if row is None else row[0]
