"""Threads share a few heaps, so that what one frees another can use."""

import platform
import subprocess
import sys

import pytest

from socialpub.core import machine

MANY_THREADS = """
import re, sys, threading
from pathlib import Path
from socialpub.core import machine

if sys.argv[1] == "limited":
    assert machine.limit_malloc_arenas()
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_threads_share_heaps() -> None:
    heaps = {how: int(run(how)) for how in ("unlimited", "limited")}
    assert heaps["limited"] < machine.MAX_ARENAS
    assert heaps["unlimited"] > machine.MAX_ARENAS, "the test sees heaps where there are many"


def run(how: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", MANY_THREADS, how], capture_output=True, text=True, check=True, timeout=60
    ).stdout
