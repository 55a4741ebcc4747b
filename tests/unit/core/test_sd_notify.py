"""Reports to systemd, and the sockets that it opens."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core.sd_notify import ServiceManager, find_service_manager


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


def test_the_first_report_says_ready_and_further_reports_follow(address, systemd):
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


def test_a_stop_is_reported_and_its_status_stays(address, systemd):
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    manager.alive("Serving")
    assert "READY=1" in systemd.next()
    manager.stopping()
    assert systemd.next() == ["STOPPING=1", "STATUS=Stopping"]
    now[0] += 60
    manager.alive("Serving")
    assert systemd.next() == ["WATCHDOG=1"]


def test_a_long_start_asks_for_more_time_until_it_ends(address, systemd):
    with ServiceManager(address).starting("Opening the database"):
        assert systemd.next() == ["STATUS=Opening the database", "EXTEND_TIMEOUT_USEC=120000000"]
    assert not any(thread.name == "start" for thread in threading.enumerate())


def test_an_abstract_address_works():
    name = f"socialpub-test-{os.getpid()}"
    hearing = Hearing(f"\0{name}")
    ServiceManager(f"@{name}").alive("Serving")
    assert hearing.next() == ["READY=1", "STATUS=Serving"]
    hearing.close()


def test_a_missing_listener_is_not_an_error(address):
    for manager in (ServiceManager(), ServiceManager(address)):
        with manager.starting("Opening"):
            manager.alive("Serving")
        manager.stopping()


def test_a_report_that_would_block_is_dropped(address, systemd):
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    for _ in range(2000):  # more than the socket buffers, without a reader
        now[0] += 60
        manager.alive("Serving")
    assert systemd.next() == ["READY=1", "STATUS=Serving"]


def test_systemds_variables_are_removed_from_the_environment():
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
def test_sockets_for_another_process_are_left_alone(count):
    environ = {"LISTEN_FDS": count, "LISTEN_PID": str(os.getpid() + 1)}
    assert find_service_manager(environ).descriptors == ()
    assert environ == {}
    assert count == "2" or find_service_manager(environ | {"LISTEN_PID": str(os.getpid())}).descriptors == ()


def test_addresses_of_sockets_have_the_form_of_listen():
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        socket.socket(socket.AF_UNIX) as other,
    ):
        manager = ServiceManager(descriptors=(four.fileno(), six.fileno(), other.fileno()))
        assert manager.addresses == [f"127.0.0.1:{four.getsockname()[1]}", f"[::1]:{six.getsockname()[1]}"]
        assert four.fileno() > 0 and socket.create_connection(four.getsockname()).close() is None, "it is open still"


def test_a_child_gets_neither_the_sockets_nor_the_variables():
    """The test needs a process whose descriptor 3 is free."""
    program = """
import os, socket, subprocess, sys
from socialpub.core.sd_notify import find_service_manager
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
