"""What a create costs at least, as a process of its own that prints how many it does a second.

`python -m tests.bench.floors commits FILE SECONDS`: one row of a post's size per durable commit.
`python -m tests.bench.floors statements DATABASE SECONDS`: the recorded statements of creates, in the same batches,
without other code. The recording (`Recording` as JSON) arrives on stdin.
"""

import json
import sqlite3
import sys
import time
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict

ROW = "x" * 700


class Recording(TypedDict):
    """The statements of one create. A parameter `[n]` is the id number n, which differs in every create."""

    statements: list[tuple[str, list[Any]]]
    ids: int
    batch: int
    """The number of creates in one commit."""


def open_database(file: str | Path) -> sqlite3.Connection:
    """Open a database with the settings of the appliance's writer."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    for name, value in (("journal_mode", "wal"), ("synchronous", "full"), ("cache_size", -4000)):
        connection.execute(f"PRAGMA {name} = {value}")
    return connection


def measure_commits(file: str, seconds: float) -> float:
    with closing(open_database(file)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, text TEXT)")
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO row (text) VALUES (?)", (ROW,))
            connection.execute("COMMIT")
            count += 1
    return count / passed


def measure_statements(file: str, seconds: float, recording: Recording) -> float:
    constants: list[Any] = []
    prepared = []
    for sql, params in recording["statements"]:
        places = []
        for value in params:
            if not isinstance(value, list):
                constants.append(value)
            places.append(value[0] if isinstance(value, list) else recording["ids"] + len(constants) - 1)
        # A slice, because `itemgetter` returns a tuple only for several places.
        one_place = itemgetter(slice(places[0], places[0] + 1)) if places else None
        prepared.append((sql, itemgetter(*places) if len(places) > 1 else one_place))
    with closing(open_database(file)) as connection:
        execute = connection.execute
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            head = f"{time.time_ns() // 1_000_000:012x}"
            execute("BEGIN IMMEDIATE")
            for number in range(recording["batch"]):
                start = f"{head[:8]}-{head[8:]}-7{number:03x}-8"
                values = [f"{start}{place:03x}-{count:012x}" for place in range(recording["ids"])] + constants
                for sql, get in prepared:
                    execute(sql, () if get is None else get(values)).fetchall()
                count += 1
            execute("COMMIT")
    return count / passed


if __name__ == "__main__":
    kind, path, length = sys.argv[1:]
    if kind == "commits":
        print(measure_commits(path, float(length)))
    else:
        print(measure_statements(path, float(length), json.load(sys.stdin)))
