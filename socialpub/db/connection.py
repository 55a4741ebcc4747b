"""The two handles for statements: a read-only connection (`Reader`) and a write in progress (`Tx`)."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from peewee import BaseQuery, Model, ModelSelect, SqliteDatabase, Tuple

from socialpub.core import actor
from socialpub.core.clock import stamp

F = TypeVar("F", bound=Callable[..., object])
M = TypeVar("M", bound=Model)
T = TypeVar("T")
Value = str | int | float | bytes | None
Params = Sequence[Value] | Mapping[str, Value]

BATCH_ROWS = 500
"""The maximum number of rows that one write of a clean-up deletes, so that other writes can run between two of them."""

SHIFTED = "strftime('%Y-%m-%dT%H:%M:%fZ', {}, ?)"
"""SQL: the stamp in a column, shifted by the parameter that `shift_by` returns."""


def shift_by(seconds: float) -> str:
    """Return the parameter of `SHIFTED`."""
    return f"{seconds:+.3f} seconds"


def placeholders(values: Collection[object]) -> str:
    """Return `?,?,?` for `IN (…)`."""
    return ",".join("?" * len(values))


def prepared(_why: str, /) -> Callable[[F], F]:
    """Mark a function with SQL text. Other functions have peewee queries over `db/models.py`.

    `_why` is the frequency of the function, or a limit of peewee. A file with only such functions has `PREPARED`
    instead.
    """
    return lambda function: function


class Row(sqlite3.Row):
    """A row whose columns are attributes."""

    __slots__ = ()

    def __getattr__(self, column: str) -> Any:
        try:
            return self[column]
        except IndexError:
            raise AttributeError(column) from None


class _Peewee(SqliteDatabase):
    """Compiles peewee queries and runs them on a given connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(None)
        self._ours = connection

    def execute_sql(self, sql: str, params: Any = ()) -> sqlite3.Cursor:
        return self._ours.execute(sql, params)


class Reader:
    """A read-only connection of one thread."""

    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the database of one instant with all statements of this block. Do not nest blocks."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:  # an error of the disk ends it
                self.connection.execute("COMMIT")

    # --- hot statements: prepared SQL

    def one(self, sql: str, params: Params = ()) -> Row | None:
        row: Row | None = self.connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    def value(self, sql: str, params: Params = ()) -> Any:
        """Return the first column of the first row, or None."""
        row = self.connection.execute(sql, params).fetchone()
        return None if row is None else row[0]

    # --- cold statements: peewee queries over `db/models.py`

    def rows(self, query: "ModelSelect[M]") -> list[M]:
        return list(query.execute(_Peewee(self.connection)))

    def first(self, query: "ModelSelect[M]") -> M | None:
        found: M | None = query.first(_Peewee(self.connection))
        return found

    def tuples(self, query: BaseQuery) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in query.tuples().execute(_Peewee(self.connection))]

    def scalar(self, query: "ModelSelect[M]") -> Any:
        """Return the first column of the first row, or None."""
        return query.scalar(_Peewee(self.connection))

    def get(self, model: type[M], row_id: str) -> M | None:
        """Return the row with this `id`."""
        return self.first(model.select().where(model._meta.primary_key == row_id))

    def has_table(self, model: type[Model]) -> bool:
        """Return whether the schema has this table, which a new database does not have yet."""
        return self.connection.execute(_HAS_TABLE, (model._meta.table_name,)).fetchone() is not None

    def data_version(self) -> int:
        """Return a number that changes when another connection commits."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])


class Tx(Reader):
    """One write in progress.

    Every row that it writes has the instant `now` at which the write began. `actor` is the actor behind the change.
    """

    __slots__ = ("_after", "actor", "now", "stamp")

    def __init__(self, connection: sqlite3.Connection, now: datetime, actor: str = actor.SYSTEM) -> None:
        super().__init__(connection)
        self.actor = actor
        self._after: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.now = now
        self.stamp = stamp(now)

    def execute(self, sql: str, params: Params = ()) -> sqlite3.Cursor:
        return self.connection.execute(sql, params)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self.connection.executemany(sql, rows)

    def insert(self, table: str, **values: Value) -> None:
        self.connection.execute(_insert_sql(table, tuple(values)), tuple(values.values()))

    def insert_many(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Insert rows with the same columns."""
        self.many(_insert_sql(table, tuple(rows[0])), [tuple(row.values()) for row in rows])

    def update(self, table: str, row_id: str, **values: Value) -> None:
        """Set columns of the row with this `id`."""
        columns = ", ".join(f"{name} = ?" for name in values)
        self.connection.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), row_id))

    # --- cold statements

    def run(self, query: BaseQuery) -> Any:
        """Run a peewee query that writes. Return the number of rows; with `returning`, the rows."""
        return query.execute(_Peewee(self.connection))

    def add(self, model: type[Model], **columns: Any) -> None:
        self.run(model.insert(**columns))

    def change(self, model: type[Model], row_id: str, **columns: Any) -> None:
        """Set columns of the row with this `id`."""
        self.run(model.update(**columns).where(model._meta.primary_key == row_id))

    def delete(self, model: type[Model], *conditions: Any) -> int:
        """Delete the rows that meet these conditions. Return their number."""
        return int(self.run(model.delete().where(*conditions) if conditions else model.delete()))

    def delete_batch(self, model: type[Model], *conditions: Any) -> int:
        """Delete at most `BATCH_ROWS` rows that meet these conditions. Return their number."""
        key = model._meta.get_primary_keys()  # type: ignore[no-untyped-call]  # peewee's
        return self.delete(model, Tuple(*key).in_(model.select(*key).where(*conditions).limit(BATCH_ROWS)))

    def after_commit(self, call: Callable[..., object], *args: Any) -> None:
        """Call `call(*args)` when this write is on the disk, unless it was rolled back."""
        self._after.append((call, args))

    @property
    def calls_after_commit(self) -> list[tuple[Callable[..., object], tuple[Any, ...]]]:
        return self._after


_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"


@cache
def _insert_sql(table: str, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders(names)})"


@contextmanager
def open_file(database: Path, mode: str) -> Iterator[Reader]:
    """Open any database file. `mode` is SQLite's mode: `ro`, `rw`. Raise sqlite3.Error."""
    address = f"file:{quote(str(database.absolute()))}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.row_factory = Row
        yield Reader(connection)
