"""Measure memory and processor time of a process tree, from /proc."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """This process and all below it."""
    found = [pid]
    for parent in found:
        for task in (PROC / str(parent) / "task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def pss_mb(pid: int) -> float:
    """Proportional set size of the tree: memory that several share is divided among them."""
    return sum(_kb(one, "smaps_rollup", "Pss") for one in tree(pid)) / 1024


def resident_mb(pid: int) -> float:
    """Resident memory of this one process."""
    return _kb(pid, "status", "VmRSS") / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of this one process so far."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_added_mb(pid: int, act: Callable[[], object]) -> float:
    """By how much the resident memory of the tree's processes rose above what it was before `act`, at its highest."""
    before = {}
    for one in tree(pid):
        (PROC / str(one) / "clear_refs").write_text("5")  # the kernel resets its high-water mark
        before[one] = _kb(one, "status", "VmRSS")
    act()
    return sum(max(0, _kb(one, "status", "VmHWM") - before[one]) for one in before) / 1024


def peak_pss_mb(pid: int, act: Callable[[], object]) -> float:
    """The highest PSS of the tree while `act` ran, children that came and went included."""
    highest = [pss_mb(pid)]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            highest.append(pss_mb(pid))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        act()
    finally:
        over.set()
        looking.join()
    return max(highest)


def _kb(pid: int, file: str, name: str) -> int:
    try:
        text = (PROC / str(pid) / file).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just ended
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0
