"""What happened, one JSON line each, so that effects can be counted even after the sandbox was killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

Entry = dict[str, Any]


class Journal:
    """Appended and flushed line by line. A line cut off by a kill is left behind and skipped when read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[Entry]:
        if not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if isinstance(entry, dict):
                    yield entry

    def write(self, entry: Entry) -> None:
        if self._file is None:
            self._file = self._open()
        self._file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def _open(self) -> IO[bytes]:
        file = self.path.open("ab")
        if file.tell() > 0:
            file.write(b"\n")
        return file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def clear(self) -> None:
        self.close()
        self.path.write_bytes(b"")
