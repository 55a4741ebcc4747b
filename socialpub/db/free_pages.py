"""Pages of the database that nothing lies in any more, and how they are given back to the disk.

A new database gives them back in small steps. One that an older version made cannot until it was written anew
once (`compact`), which takes as long as it is large; until then its free pages are filled again, and are not lost.
"""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from socialpub.db.transaction import Reader, Tx

STEP_PAGES = 250
"""In one write, of about 20 ms: 1 MB."""
MUCH_BYTES = 32 * 1024 * 1024
MUCH_SHARE = 0.1
"""Less than either of the two stays for what comes next."""
_INCREMENTAL = 2


@dataclass(frozen=True, slots=True)
class DatabasePages:
    size_bytes: int
    free_bytes: int
    """Of the former."""
    in_steps: bool
    """Whether they can be given back while everything runs."""

    @property
    def many_free(self) -> bool:
        return self.free_bytes >= max(MUCH_BYTES, MUCH_SHARE * self.size_bytes)


def read(reader: Reader) -> DatabasePages:
    """How it is now, in a moment however large the database is."""
    page_bytes, pages, free, mode = (
        int(reader.value(f"PRAGMA {name}")) for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")
    )
    return DatabasePages(pages * page_bytes, free * page_bytes, mode == _INCREMENTAL)


def give_back(tx: Tx) -> None:
    """A few of them."""
    # The statement gives back one page a step and has no columns: Python's sqlite3 makes one step of it, whatever
    # number it names.
    for _ in range(STEP_PAGES):
        tx.execute("PRAGMA incremental_vacuum(1)")


def compact(connection: sqlite3.Connection, folder: Path) -> None:
    """Write the database anew, over this connection; `folder` has room for a second one meanwhile."""
    variable = "SQLITE_TMPDIR"
    before = os.environ.get(variable)
    os.environ[variable] = str(folder)  # /tmp may be small, and in memory
    try:
        connection.execute("PRAGMA auto_vacuum = incremental")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
