"""The two handles that statements run on: one write in progress (`Tx`), or a read-only connection (`Reader`)."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from socialpub.core import actor
from socialpub.core.clock import stamp

# MERGED from db/transaction.py: What code is handed to work with the database: one write in progress, or a read-on

Row = sqlite3.Row
Value = str | int | float | bytes | None


BATCH_ROWS = 500
"""So many rows one write of housekeeping removes: others have their turn between two of them."""


def placeholders(values: Collection[object]) -> str:
    """`?,?,?` for `IN (…)`."""
    return ",".join("?" * len(values))


class Tx:
    """One write in progress. `now` is the instant it began; everything it writes carries that one. `actor` is who asked
    for it (`core/actor.py`)."""

    __slots__ = ("_after", "_connection", "actor", "now", "stamp")

    def __init__(self, connection: sqlite3.Connection, now: datetime, actor: str = actor.SYSTEM) -> None:
        self._connection = connection
        self.actor = actor
        self._after: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.now = now
        self.stamp = stamp(now)

    def execute(self, sql: str, params: Sequence[Value] | Mapping[str, Value] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, params)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self._connection.executemany(sql, rows)

    def one(self, sql: str, params: Sequence[Value] | Mapping[str, Value] = ()) -> Row | None:
        row: Row | None = self._connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Value] = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def insert(self, table: str, **values: Value) -> None:
        self._connection.execute(_insert_sql(table, tuple(values)), tuple(values.values()))

    def update(self, table: str, row_id: str, **values: Value) -> None:
        """Set columns of the row with this `id`."""
        columns = ", ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), row_id))

    @property
    def reader(self) -> "Reader":
        """What this write has made so far, for those that only read."""
        return Reader(self._connection)

    def after_commit(self, call: Callable[..., object], *args: Any) -> None:
        """Have `call(*args)` run once this write is on the disk; never when it was undone."""
        self._after.append((call, args))

    def committed(self) -> Iterator[tuple[Callable[..., object], tuple[Any, ...]]]:
        """What is to be called now that this write is on the disk."""
        yield from self._after


_inserts: dict[tuple[str, tuple[str, ...]], str] = {}


def _insert_sql(table: str, names: tuple[str, ...]) -> str:
    sql = _inserts.get((table, names))
    if sql is None:
        marks = ", ".join("?" * len(names))
        sql = _inserts[table, names] = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
    return sql


class Reader:
    """A read-only connection. Only for the thread that asked for it."""

    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def one(self, sql: str, params: Sequence[Value] | Mapping[str, Value] = ()) -> Row | None:
        row: Row | None = self.connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Value] | Mapping[str, Value] = ()) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.connection.execute(sql, params).fetchone()
        return None if row is None else row[0]

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])


# MERGED from db/moved_stamps.py: Stamps that a statement moves: by how much a wall clock was set.

SHIFTED = "strftime('%Y-%m-%dT%H:%M:%fZ', {}, ?)"
"""The stamp in a column, moved by the parameter that `by` gives."""


def shift_by(seconds: float) -> str:
    """How far `MOVED` moves."""
    return f"{seconds:+.3f} seconds"
