"""The machine's memory: how much this process may use, and how many heaps glibc keeps."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# MERGED from core/machine_memory.py: How much memory the machine has for us: all of it, or what a control group (s

_ASSUMED_BYTES = 2 * 1024**3
"""Where nobody says, as elsewhere than on Linux."""


def memory_bytes(root: Path = Path("/")) -> int:
    """The smallest of the machine's memory and the limits of our control groups. `root` is where /proc and /sys lie."""
    return min([_total_memory(root), *_group_limits(root)])


def _total_memory(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            return int(rest.split()[0]) * 1024
    return _ASSUMED_BYTES


def _group_limits(root: Path) -> Iterator[int]:
    """The limits of our control group and of those around it, in both versions of the kernel's interface."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            tree, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            tree, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for folder in (group, *group.parents):
            limit = _read(tree / folder / name).strip()
            if limit.isdecimal():  # "max" is no limit
                yield int(limit)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# MERGED from core/malloc_arenas.py: How many heaps glibc keeps for the threads of this process.

MAX_ARENAS = 2
_M_ARENA_MAX = -8


def limit_malloc_arenas() -> bool:
    """Keep to `MOST` heaps; comes before threads are started. False where that cannot be had, which is no fault."""
    try:
        # It asks for memory that can be run, which a confined process may be refused.
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    except (ImportError, MemoryError, OSError):
        return False
    return mallopt is not None and mallopt(_M_ARENA_MAX, MAX_ARENAS) == 1
