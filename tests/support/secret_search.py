"""Search for secrets in bytes: files, responses, command lines and environments of processes.

A secret is known under a name, and only the name is reported. It is looked for in every form in which somebody writes
such a thing down, since a leak in Base64 is one.
"""

import base64
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

SHORTEST = 10
"""Characters. What is shorter may stand anywhere by chance."""
LOOK_SECONDS = 0.02
BLOCK_BYTES = 8 * 1024 * 1024


@dataclass
class SecretSearch:
    forms: dict[bytes, str] = field(default_factory=dict)
    """What is looked for, with the name of its secret."""

    def add(self, name: str, *secrets: str | bytes | None) -> None:
        for secret in secrets:
            if secret:
                raw = secret.encode() if isinstance(secret, str) else secret
                assert len(raw) >= SHORTEST, f"{name} is too short to be looked for"
                self.forms |= dict.fromkeys(_forms(raw), name)

    @property
    def names(self) -> set[str]:
        return set(self.forms.values())

    def found_in(self, content: bytes, place: str) -> set[str]:
        """`name in place` of every secret in the bytes."""
        return {f"{name} in {place}" for form, name in self.forms.items() if form in content}

    def found_in_files(self, folder: Path, skipped: Iterable[Path] = ()) -> set[str]:
        """The same of every file below a folder, its name included."""
        found: set[str] = set()
        for path in (path for path in folder.rglob("*") if path not in set(skipped)):
            place = str(path.relative_to(folder))
            found |= self.found_in(os.fsencode(place), f"the name of {place}")
            if path.is_file() and not path.is_symlink():
                for block in _blocks(path, max(map(len, self.forms))):
                    found |= self.found_in(block, place)
        return found


def _forms(raw: bytes) -> set[bytes]:
    written = {raw, base64.b64encode(raw), base64.urlsafe_b64encode(raw).rstrip(b"="), raw.hex().encode()}
    with contextlib.suppress(UnicodeDecodeError):
        text = raw.decode()
        for one in (quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1], text.replace("/", "\\/")):
            written.add(one.encode())
    return written


def _blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """The file in blocks of which each begins with the end of the one before it."""
    with path.open("rb") as file:
        end = b""
        while block := file.read(BLOCK_BYTES):
            yield end + block
            end = block[-overlap:]


@dataclass(frozen=True)
class SeenProcess:
    command_line: bytes
    environment: bytes


class ProcessWatch:
    """Notes every process that this one has started, and those that they start, as `ps` shows them to anybody."""

    def __init__(self) -> None:
        self.seen: set[SeenProcess] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "ProcessWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def of(self, wanted: Callable[[bytes], bool]) -> list[SeenProcess]:
        """Those with such a command line."""
        return [one for one in self.seen if wanted(one.command_line)]

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for pid in _descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    folder = Path(f"/proc/{pid}")
                    seen = SeenProcess((folder / "cmdline").read_bytes(), (folder / "environ").read_bytes())
                    self.seen.add(seen)


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _descendants(child)
