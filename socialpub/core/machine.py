"""The memory of the machine, the names of its users, and the resources that a process uses."""

import gc
import os
import pwd
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_ASSUMED_BYTES = 2 * 1024**3
"""The assumed memory if the system does not report the memory, as outside Linux."""


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the machine's memory, or the lowest limit of the control groups. `root` contains /proc and /sys."""
    return min([_total_memory(root), *_group_limits(root)])


def _total_memory(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            return int(rest.split()[0]) * 1024
    return _ASSUMED_BYTES


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of this control group and its parents, in both versions of the kernel's interface."""
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
            if limit.isdecimal():  # "max" is not a limit
                yield int(limit)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def user_name(uid: int) -> str:
    """Return the name of a user, or the number of a user without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """The resources that a process uses."""

    memory_bytes: int = 0
    """The resident set, with shared pages."""
    cpu_seconds: float = 0.0
    threads: int = 0
    open_files: int = 0
    most_files: int = 0


def read_process_figures() -> ProcessFigures:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        threads, open_files = (len(os.listdir(f"/proc/self/{folder}")) for folder in ("task", "fd"))  # noqa: PTH208
    except OSError:  # the kernel does not report them
        return ProcessFigures(most_files=limit)
    cpu_seconds = round(time.process_time(), 3)
    return ProcessFigures(pages * resource.getpagesize(), cpu_seconds, threads, open_files, limit)


MAX_ARENAS = 2
"""By default, glibc makes a heap for each thread, and a heap cannot use memory that another heap freed. A worker with
threads for every network grew by 0.25 MB a minute. Python runs one thread at a time, so no thread waits for a heap."""
LARGE_BYTES = 1 << 20
"""Memory of this size is given back to the system when it is free. By default, glibc keeps up to twice the largest
block that was ever freed: 38 MB after the hash of one password."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def prepare_to_serve() -> bool:
    """Configure the memory of a process that runs for weeks, after its imports and before its threads start.

    Return False if glibc's heaps cannot be configured.
    """
    configured = _limit_heaps()
    # The collector must not search the program's own objects: a search stops all threads for 20 milliseconds.
    gc.collect()
    gc.freeze()
    return configured


def _limit_heaps() -> bool:
    try:
        # ctypes needs executable memory, which a confined process may not get.
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    except (ImportError, MemoryError, OSError):
        return False
    limits = (_M_ARENA_MAX, MAX_ARENAS), (_M_MMAP_THRESHOLD, LARGE_BYTES), (_M_TRIM_THRESHOLD, LARGE_BYTES)
    return mallopt is not None and all(mallopt(name, value) == 1 for name, value in limits)
