"""The memory of the machine, and what a process keeps of it."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from socialpub.core import machine

GIB = 1024**3


def lay(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_memory_of_the_machine_is_read(tmp_path):
    lay(tmp_path, **{"proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 1 kB\n"})
    assert machine.memory_bytes(tmp_path) == 4 * GIB


def test_the_lowest_limit_of_the_control_groups_counts(tmp_path):
    lay(
        tmp_path,
        **{
            "proc/meminfo": "MemTotal:        4194304 kB\n",
            "proc/self/cgroup": "0::/system.slice/socialpub-web.service\n",
            "sys/fs/cgroup/system.slice/memory.max": f"{GIB}\n",
            "sys/fs/cgroup/system.slice/socialpub-web.service/memory.max": "max\n",
        },
    )
    assert machine.memory_bytes(tmp_path) == GIB


def test_the_limit_of_a_container_counts(tmp_path):
    lay(
        tmp_path,
        **{
            "proc/meminfo": "MemTotal:        4194304 kB\n",
            "proc/self/cgroup": "4:cpu,memory:/docker/abc\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        },
    )
    assert machine.memory_bytes(tmp_path) == GIB


def test_without_information_a_low_memory_is_assumed(tmp_path):
    assert machine.memory_bytes(tmp_path) == 2 * GIB
    assert machine.memory_bytes() > 0


# --- heaps ------------------------------------------------------------------------------------------------------------

MANY_THREADS = """
import re, sys, threading
from pathlib import Path
from socialpub.core import machine

if sys.argv[1] == "limited":
    assert machine.prepare_to_serve()
threads, kept = 12, []
together = threading.Barrier(threads + 1)

def hold() -> None:
    kept.append([bytearray(2000) for _ in range(50)])
    together.wait()
    together.wait()

for _ in range(threads):
    threading.Thread(target=hold).start()
together.wait()
# Each heap of a thread begins a reserved region of 64 MB.
begins = {int(line.split("-")[0], 16) for line in Path("/proc/self/maps").read_text().splitlines() if " rw-p " in line}
print(sum(begin % (64 << 20) == 0 for begin in begins))
together.wait()
"""


LARGE_BLOCKS = """
import sys
from pathlib import Path
from socialpub.core import machine

if sys.argv[1] == "limited":
    assert machine.prepare_to_serve()

def kept_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

before = kept_mb()
for _ in range(3):
    bytearray(19 << 20)  # what the hash of a password needs
print(kept_mb() - before)
"""

SEARCHED = """
import gc
from socialpub.core import machine

before = len(gc.get_objects())
machine.prepare_to_serve()
print(before, len(gc.get_objects()))
"""

glibc_only = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")


@glibc_only
def test_threads_share_heaps():
    heaps = {how: int(run(MANY_THREADS, how)) for how in ("unlimited", "limited")}
    assert heaps["limited"] <= machine.MAX_ARENAS
    assert heaps["unlimited"] > machine.MAX_ARENAS, "the test sees heaps where there are many"


@glibc_only
def test_a_large_block_goes_back_to_the_system():
    kept = {how: float(run(LARGE_BLOCKS, how)) for how in ("unlimited", "limited")}
    assert kept["limited"] < 5
    assert kept["unlimited"] > 15, "the test sees a block that stays"


def test_the_collector_does_not_search_the_objects_of_the_program():
    before, after = run(SEARCHED).split()
    assert int(after) < int(before) / 100


def run(program: str, how: str = "") -> str:
    return subprocess.run(
        [sys.executable, "-c", program, how], capture_output=True, text=True, check=True, timeout=60
    ).stdout
