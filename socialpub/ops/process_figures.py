"""What this process uses of the machine, as the kernel tells it. Where there is no /proc it tells less."""

import resource
import time
from dataclasses import dataclass
from pathlib import Path

_SELF = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Zero where the kernel does not tell."""

    memory_bytes: int = 0
    """What of it lies in memory, with what it shares with others."""
    cpu_seconds: float = 0.0
    threads: int = 0
    open_files: int = 0
    most_files: int = 0


def read() -> ProcessFigures:
    """Those of now."""
    return ProcessFigures(
        memory_bytes=_memory(),
        cpu_seconds=round(time.process_time(), 3),
        threads=_entries("task"),
        open_files=_entries("fd"),
        most_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _memory() -> int:
    try:
        return int((_SELF / "statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _entries(folder: str) -> int:
    try:
        return sum(1 for _ in (_SELF / folder).iterdir())
    except OSError:
        return 0
