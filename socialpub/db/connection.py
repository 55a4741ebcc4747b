"""The database: peewee's, with rows by key and the write in progress."""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from peewee import (
    ColumnBase,
    Field,
    Function,
    Model,
    PeeweeException,
    SqliteDatabase,
    Tuple,
    fn,
)

from socialpub.core import actor
from socialpub.core.clock import stamp

M = TypeVar("M", bound=Model)
Value = str | int | float | bytes | None
Params = Sequence[Value] | Mapping[str, Value]
Convert = Callable[[Iterable[Any]], Sequence[Any]]
CallsAfterCommit = list[tuple[Callable[..., object], tuple[Any, ...]]]
"""Functions and their arguments."""

BATCH_ROWS = 500
"""The maximum number of rows that one write of a clean-up deletes, so that other writes can run between two of them."""


def shifted(at: ColumnBase, seconds: float) -> Function:
    """Return a stamp, shifted by this number of seconds."""
    return fn.STRFTIME("%Y-%m-%dT%H:%M:%fZ", at, f"{seconds:+.3f} seconds")


class Database(SqliteDatabase):
    """One database file. peewee owns its connections, one for each thread, and its transactions.

    Its errors are those of `sqlite3`, because peewee does not translate the errors of all rows of a statement.
    """

    def __init__(self, path: Path | str, **options: Any) -> None:
        super().__init__(str(path), check_same_thread=False, cached_statements=256, **options)
        self._writing = threading.local()

    def connect(self, reuse_if_open: bool = False) -> bool:
        try:
            opened: bool = super().connect(reuse_if_open)
        except PeeweeException as error:
            raise getattr(error, "orig", error) from None
        return opened

    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        connection: sqlite3.Connection = super().connection()  # type: ignore[no-untyped-call]
        return connection

    def execute_sql(self, sql: str, params: Params | None = None) -> sqlite3.Cursor:
        return self.connection().execute(sql, params or ())

    def begin(self, lock_type: str = "DEFERRED") -> None:
        self.execute_sql(f"BEGIN {lock_type}")

    def commit(self) -> None:
        self.execute_sql("COMMIT")

    def rollback(self) -> None:
        if self.connection().in_transaction:  # an error of the disk ends the transaction
            self.execute_sql("ROLLBACK")

    # --- the write in progress of this thread

    def begin_write(self, now: datetime, actor: str = actor.SYSTEM) -> CallsAfterCommit:
        """Set the instant and the actor of the following statements of this thread.

        Return the list to which `call_after_commit` adds. peewee's own list has the calls of a savepoint that was
        rolled back.
        """
        calls: CallsAfterCommit = []
        self._writing.now, self._writing.stamp, self._writing.actor = now, stamp(now), actor
        self._writing.after_commit = calls
        return calls

    @property
    def now(self) -> datetime:
        """The instant at which the write began. Every row that it writes has this instant."""
        now: datetime = self._writing.now
        return now

    @property
    def stamp(self) -> str:
        """The stamp of `now`."""
        text: str = self._writing.stamp
        return text

    @property
    def actor(self) -> str:
        """The actor behind the change."""
        name: str = self._writing.actor
        return name

    def call_after_commit(self, call: Callable[..., object], *args: Any) -> None:
        """Call `call(*args)` when this write is on the disk, unless it was rolled back."""
        self._writing.after_commit.append((call, args))

    # --- rows by key: the text of the statement is made once for each model and its columns

    def insert(self, model: type[Model], *rows: Mapping[str, Any]) -> None:
        """Insert rows with the same columns."""
        sql, to_database = _insert_sql(model, tuple(rows[0]))
        self.connection().executemany(sql, [to_database(row.values()) for row in rows])

    def update(self, model: type[Model], key: Value, /, **columns: Any) -> None:
        """Set columns of the row with this primary key."""
        sql, to_database = _update_sql(model, tuple(columns))
        self.execute_sql(sql, (*to_database(columns.values()), key))

    def get(self, model: type[M], *key: Value) -> M | None:
        """Return the row with this primary key."""
        sql, names, to_python = _get_sql(model)
        values = self.execute_sql(sql, key).fetchone()
        if values is None:
            return None
        row = model(__no_default__=1)
        row.__data__ = dict(zip(names, to_python(values), strict=True))
        return row

    # --- deleting

    def delete(self, model: type[Model], *conditions: Any) -> int:
        """Delete the rows that meet these conditions. Return their number."""
        query = model.delete().where(*conditions) if conditions else model.delete()
        return int(query.execute(self))

    def delete_batch(self, model: type[Model], *conditions: Any) -> int:
        """Delete at most `BATCH_ROWS` rows that meet these conditions. Return their number."""
        key = model._meta.get_primary_keys()  # type: ignore[no-untyped-call]  # peewee's
        return self.delete(model, Tuple(*key).in_(model.select(*key).where(*conditions).limit(BATCH_ROWS)))


@cache
def _insert_sql(model: type[Model], names: tuple[str, ...]) -> tuple[str, Convert]:
    fields = [model._meta.fields[name] for name in names]
    columns, values = ", ".join(_columns(fields)), ", ".join("?" * len(names))
    return f"INSERT INTO {model._meta.table_name} ({columns}) VALUES ({values})", _converter(fields, "db_value")


@cache
def _update_sql(model: type[Model], names: tuple[str, ...]) -> tuple[str, Convert]:
    fields = [model._meta.fields[name] for name in names]
    columns = " = ?, ".join(_columns(fields))
    return f"UPDATE {model._meta.table_name} SET {columns} = ? WHERE {_by_key(model)}", _converter(fields, "db_value")


@cache
def _get_sql(model: type[Model]) -> tuple[str, Sequence[str], Convert]:
    fields = model._meta.sorted_fields
    sql = f"SELECT {', '.join(_columns(fields))} FROM {model._meta.table_name} WHERE {_by_key(model)}"
    return sql, model._meta.sorted_field_names, _converter(fields, "python_value")


def _by_key(model: type[Model]) -> str:
    fields = model._meta.get_primary_keys()  # type: ignore[no-untyped-call]  # peewee's
    return f"{' = ? AND '.join(_columns(fields))} = ?"


def _columns(fields: Sequence[Field]) -> list[str]:
    return [field.column_name for field in fields]


def _converter(fields: Sequence[Field], method: str) -> Convert:
    """Return a function that converts the values of these fields with this method of theirs."""
    calls = {
        position: getattr(field, method)
        for position, field in enumerate(fields)
        if getattr(type(field), method) is not getattr(Field, method)
    }

    def convert(values: Iterable[Any]) -> Sequence[Any]:
        converted = list(values)
        for position, call in calls.items():
            converted[position] = call(converted[position])
        return converted

    return convert if calls else tuple


@contextmanager
def open_file(path: Path, mode: str) -> Iterator[Database]:
    """Open any database file. `mode` is SQLite's mode: `ro`, `rw`. Raise sqlite3.Error."""
    database = Database(f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True)
    try:
        yield database
    finally:
        database.close()
