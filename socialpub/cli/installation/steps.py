"""What an installation does, one sentence each: shown before, as `--dry-run`, or as it is done."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class InstallationStep:
    sentence: str
    do: Callable[[], object]


def file(real: Path, shown: Path, text: str, mode: int, owner: tuple[int, int] | None) -> Iterator[InstallationStep]:
    """Have a file hold this text. No step where it does already."""
    if not real.is_symlink() and real.exists() and real.read_text() == text:
        return

    def write() -> None:
        folder(real.parent, 0o755, None)
        fresh = real.with_name(f".{real.name}.new")
        fresh.write_text(text)
        own(fresh, mode, owner)
        fresh.rename(real)

    yield InstallationStep(f"{'Renew' if real.exists() else 'Write'} {shown}", write)


def folder(real: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """Make a folder, and those above it, if it is missing."""
    missing = [path for path in (real, *real.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        path.chmod(0o755)
    if real in missing:
        own(real, mode, owner)


def own(real: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """`owner` are the numbers of a user and a group; None: whoever makes it."""
    if owner is not None:
        os.chown(real, *owner)
    real.chmod(mode)
