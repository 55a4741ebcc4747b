"""The number of durable commits a second, in a process of its own: one row of a post's size in each commit.

`python -m tests.bench.floors FILE SECONDS` prints it.
"""

import sqlite3
import sys
import time
from contextlib import closing

ROW = "x" * 700


def measure_commits(file: str, seconds: float) -> float:
    """Commit with the settings of the appliance's writer."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
        for name, value in (("journal_mode", "wal"), ("synchronous", "full"), ("cache_size", -4000)):
            connection.execute(f"PRAGMA {name} = {value}")
        connection.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, text TEXT)")
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO row (text) VALUES (?)", (ROW,))
            connection.execute("COMMIT")
            count += 1
    return count / passed


if __name__ == "__main__":
    print(measure_commits(sys.argv[1], float(sys.argv[2])))
