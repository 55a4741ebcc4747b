"""Counts what is written to the write-ahead log of a database, in any process."""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24


class WalCount:
    """Counts `commits` and `bytes` of the log between enter and exit.

    It holds a read transaction, so SQLite does not begin the log again, and the log grows.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self.commits = self.bytes = 0

    def __enter__(self) -> Self:
        self._reader = sqlite3.connect(self._database, isolation_level=None)
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._before = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        salt, commits, size = self._read()
        begun_again = salt != self._before[0]  # at most once, at the first write
        self.commits = commits - (0 if begun_again else self._before[1])
        self.bytes = size - (0 if begun_again else self._before[2])
        with closing(self._reader):
            self._reader.execute("COMMIT")

    def _read(self) -> tuple[bytes, int, int]:
        """Return the salt of the log, and its commits and bytes since it began."""
        commits = size = 0
        with self._log.open("rb") as log:
            header = log.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES:
                return b"", 0, 0
            (page_bytes,) = struct.unpack_from(">I", header, 8)
            salt = header[16:24]
            while len(frame := log.read(_FRAME_HEADER_BYTES)) == _FRAME_HEADER_BYTES and frame[8:16] == salt:
                commits += frame[4:8] != b"\0\0\0\0"
                size += _FRAME_HEADER_BYTES + page_bytes
                log.seek(page_bytes, 1)
        return salt, commits, size
