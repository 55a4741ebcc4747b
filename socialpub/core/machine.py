"""The memory of the machine: how much this process may use, and how many heaps glibc keeps."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ASSUMED_BYTES = 2 * 1024**3
"""Where the system does not say, as outside Linux."""


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the smallest of the machine's memory and our control groups' limits. `root` contains /proc and /sys."""
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


MAX_ARENAS = 2
"""By default, glibc makes a heap for each thread, and no heap can use what another one freed. A worker with threads for
every network grew by a quarter of a megabyte a minute. Python runs one thread at a time, so none waits for a heap."""
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
