"""Raw durable commits, as a process of its own: `python -m tests.bench.commits FILE SECONDS` prints how many a second.

One writer, one row of a post's size per commit, flushed to the disk each time. A program that commits each
post alone gets no more.
"""

import sqlite3
import sys
import time

ROW = "x" * 700


def measure(file: str, seconds: float) -> float:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    connection.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, text TEXT)")
    count, began = 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO row (text) VALUES (?)", (ROW,))
        connection.execute("COMMIT")
        count += 1
    connection.close()
    return count / passed


if __name__ == "__main__":
    print(measure(sys.argv[1], float(sys.argv[2])))
