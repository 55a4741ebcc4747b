"""What happened, one JSON line each, so that effects can be counted even after the sandbox was killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

JournalEntry = dict[str, Any]


class Journal:
    """Appended and flushed line by line; without a path nothing is kept.

    A line cut off by a kill is left behind and skipped when read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[JournalEntry]:
        if self.path is None or not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if isinstance(entry, dict):
                    yield entry

    def write(self, network: str, kind: str, **facts: Any) -> None:
        if self.path is None:
            return
        if self._file is None:
            self._file = self._open(self.path)
        entry = {"network": network, "kind": kind, **facts}
        self._file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def _open(self, path: Path) -> IO[bytes]:
        file = path.open("ab")
        if file.tell() > 0:
            file.write(b"\n")
        return file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        self.close()
        if self.path is not None:
            self.path.write_bytes(b"")
