"""Measure memory, processor time and written bytes of a process tree, from /proc."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ ([0-9a-f]+) (\S+) (\d+)")
_SIZE = re.compile(r"^(Rss|Pss|Anonymous): +(\d+) kB")


def tree(pid: int) -> list[int]:
    """Return this process and all below it."""
    found = [pid]
    for parent in found:
        for task in (PROC / str(parent) / "task").glob("*/children"):
            found += [int(child) for child in _read(task).split()]
    return found


def own_mb(*pids: int) -> float:
    """Return the proportional set size of these trees as if no other process used the same programs and libraries.

    Other measured processes share files with the trees, which would make the plain size smaller.
    """
    own, files = 0, dict[tuple[str, ...], int]()
    for one in (each for pid in pids for each in tree(pid)):
        file: tuple[str, ...] = ()
        sizes: dict[str, int] = {}
        for line in [*_read(PROC / str(one) / "smaps").splitlines(), "0-0 - 0 - 0"]:
            if found := _SIZE.match(line):
                sizes[found[1]] = int(found[2])
            elif found := _MAPPING.match(line):
                if sizes and file[2] == "0":
                    own += sizes["Pss"]
                elif sizes:
                    own += sizes["Anonymous"]
                    files[file] = max(files.get(file, 0), sizes["Rss"] - sizes["Anonymous"])
                file, sizes = found.groups(), {}
    return (own + sum(files.values())) / 1024


def pss_mb(pid: int) -> float:
    """Return the proportional set size of the tree, which every process with the same files makes smaller."""
    found = (re.search(r"^Pss: +(\d+)", _read(PROC / str(one) / "smaps_rollup"), re.MULTILINE) for one in tree(pid))
    return sum(int(one[1]) for one in found if one) / 1024


def resident_mb(pid: int) -> float:
    """Return the resident memory of this one process."""
    return _kb(pid, "VmRSS") / 1024


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the processor time of these processes so far."""
    total = 0
    for pid in pids:
        fields = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12]) if fields else 0
    return total / TICKS


def run_seconds(pid: int) -> float:
    """Return the processor time of the threads of this process, more exactly than `cpu_seconds`."""
    threads = (PROC / str(pid) / "task").glob("*/schedstat")
    return sum(int(_read(one).partition(" ")[0] or 0) for one in threads) / 1e9


def peak_added_mb(pid: int, act: Callable[[], object]) -> float:
    """Return the rise of the resident memory of the tree's processes during `act`, at its highest."""
    before = {}
    for one in tree(pid):
        (PROC / str(one) / "clear_refs").write_text("5")  # the kernel resets its high-water mark
        before[one] = _kb(one, "VmRSS")
    act()
    return sum(max(0, _kb(one, "VmHWM") - before[one]) for one in before) / 1024


def _kb(pid: int, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", _read(PROC / str(pid) / "status"), re.MULTILINE)
    return int(found[1]) if found else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # the process has just ended
