"""The memory of the machine, what a process keeps of it, and reports to systemd."""

import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core import machine
from socialpub.core.machine import ServiceManager, find_service_manager

GIB = 1024**3


def lay(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_memory_of_the_machine_is_read(tmp_path: Path) -> None:
    lay(tmp_path, **{"proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 1 kB\n"})
    assert machine.memory_bytes(tmp_path) == 4 * GIB


def test_the_lowest_limit_of_the_control_groups_counts(tmp_path: Path) -> None:
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


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    lay(
        tmp_path,
        **{
            "proc/meminfo": "MemTotal:        4194304 kB\n",
            "proc/self/cgroup": "4:cpu,memory:/docker/abc\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        },
    )
    assert machine.memory_bytes(tmp_path) == GIB


def test_without_information_a_low_memory_is_assumed(tmp_path: Path) -> None:
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
def test_threads_share_heaps() -> None:
    heaps = {how: int(run(MANY_THREADS, how)) for how in ("unlimited", "limited")}
    assert heaps["limited"] <= machine.MAX_ARENAS
    assert heaps["unlimited"] > machine.MAX_ARENAS, "the test sees heaps where there are many"


@glibc_only
def test_a_large_block_goes_back_to_the_system() -> None:
    kept = {how: float(run(LARGE_BLOCKS, how)) for how in ("unlimited", "limited")}
    assert kept["limited"] < 5
    assert kept["unlimited"] > 15, "the test sees a block that stays"


def test_the_collector_does_not_search_the_objects_of_the_program() -> None:
    before, after = run(SEARCHED).split()
    assert int(after) < int(before) / 100


def run(program: str, how: str = "") -> str:
    return subprocess.run(
        [sys.executable, "-c", program, how], capture_output=True, text=True, check=True, timeout=60
    ).stdout


# --- systemd ----------------------------------------------------------------------------------------------------------


class Hearing:
    """systemd's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(30)

    def next(self) -> list[str]:
        return self._socket.recv(4096).decode().split("\n")

    def silent(self) -> bool:
        self._socket.setblocking(False)
        try:
            return not self._socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(30)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


@pytest.fixture
def systemd(address: str) -> Iterator[Hearing]:
    hearing = Hearing(address)
    yield hearing
    hearing.close()


def test_the_first_report_says_ready_and_further_reports_follow(address: str, systemd: Hearing) -> None:
    now = [1000.0]
    manager = ServiceManager(address, watchdog_seconds=20, monotonic=lambda: now[0])
    manager.alive("Serving")
    assert systemd.next() == ["READY=1", "STATUS=Serving"]
    now[0] += 4.9
    manager.alive("Serving")
    assert systemd.silent(), "ten times a second would be a report too many"
    now[0] += 0.2  # a quarter of its timeout
    manager.alive("Nothing is due")
    assert systemd.next() == ["WATCHDOG=1", "STATUS=Nothing is due"]


def test_a_stop_is_reported_and_its_status_stays(address: str, systemd: Hearing) -> None:
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    manager.alive("Serving")
    assert "READY=1" in systemd.next()
    manager.stopping()
    assert systemd.next() == ["STOPPING=1", "STATUS=Stopping"]
    now[0] += 60
    manager.alive("Serving")
    assert systemd.next() == ["WATCHDOG=1"]


def test_a_long_start_asks_for_more_time_until_it_ends(address: str, systemd: Hearing) -> None:
    with ServiceManager(address).starting("Opening the database"):
        assert systemd.next() == ["STATUS=Opening the database", "EXTEND_TIMEOUT_USEC=120000000"]
    assert not any(thread.name == "start" for thread in threading.enumerate())


def test_an_abstract_address_works() -> None:
    name = f"socialpub-test-{os.getpid()}"
    hearing = Hearing(f"\0{name}")
    ServiceManager(f"@{name}").alive("Serving")
    assert hearing.next() == ["READY=1", "STATUS=Serving"]
    hearing.close()


def test_a_missing_listener_is_not_an_error(address: str) -> None:
    for manager in (ServiceManager(), ServiceManager(address)):
        with manager.starting("Opening"):
            manager.alive("Serving")
        manager.stopping()


def test_a_report_that_would_block_is_dropped(address: str, systemd: Hearing) -> None:
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    for _ in range(2000):  # more than the socket buffers, without a reader
        now[0] += 60
        manager.alive("Serving")
    assert systemd.next() == ["READY=1", "STATUS=Serving"]


def test_systemds_variables_are_removed_from_the_environment() -> None:
    environ = {
        "NOTIFY_SOCKET": "@somewhere",
        "WATCHDOG_USEC": "60000000",
        "WATCHDOG_PID": str(os.getpid()),
        "LISTEN_FDS": "0",
        "LISTEN_PID": str(os.getpid()),
        "LISTEN_FDNAMES": "",
        "LISTEN_PIDFDID": "7",
        "HOME": "/",
    }
    find_service_manager(environ)
    assert environ == {"HOME": "/"}, "a child would speak, or listen, in our name"


@pytest.mark.parametrize("count", ["2", "", "-1", "two"])
def test_sockets_for_another_process_are_left_alone(count: str) -> None:
    environ = {"LISTEN_FDS": count, "LISTEN_PID": str(os.getpid() + 1)}
    assert find_service_manager(environ).descriptors == ()
    assert environ == {}
    assert count == "2" or find_service_manager(environ | {"LISTEN_PID": str(os.getpid())}).descriptors == ()


def test_addresses_of_sockets_have_the_form_of_listen() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        socket.socket(socket.AF_UNIX) as other,
    ):
        manager = ServiceManager(descriptors=(four.fileno(), six.fileno(), other.fileno()))
        assert manager.addresses == [f"127.0.0.1:{four.getsockname()[1]}", f"[::1]:{six.getsockname()[1]}"]
        assert four.fileno() > 0 and socket.create_connection(four.getsockname()).close() is None, "it is open still"


def test_a_child_gets_neither_the_sockets_nor_the_variables() -> None:
    """The test needs a process whose descriptor 3 is free."""
    program = """
import os, socket, subprocess, sys
from socialpub.core.machine import find_service_manager
listening = socket.create_server(("127.0.0.1", 0))
os.dup2(listening.fileno(), 3, inheritable=True)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
assert find_service_manager(os.environ).descriptors == (3,)
child = "import os; print('LISTEN_FDS' in os.environ); os.system('ls -l /proc/self/fd')"
print(subprocess.run([sys.executable, "-c", child], close_fds=False, capture_output=True, text=True).stdout)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False")
    assert "/dev/null" in done.stdout or "pipe:" in done.stdout
    assert "socket:" not in done.stdout
