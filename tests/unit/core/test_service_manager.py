"""systemd hears that the service works, from whoever worked, and from nobody else."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core.systemd import ServiceManager, from_environment


class Hearing:
    """The other end: systemd's."""

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


def test_the_first_sign_of_life_says_ready_and_the_next_ones_come_in_time(address: str, systemd: Hearing) -> None:
    now = [1000.0]
    manager = ServiceManager(address, watchdog_seconds=20, monotonic=lambda: now[0])
    manager.alive("Serving")
    assert systemd.next() == ["READY=1", "STATUS=Serving"]
    now[0] += 4.9
    manager.alive("Serving")
    assert systemd.silent(), "ten times a second would be a report too many"
    now[0] += 0.2  # a quarter of its patience
    manager.alive("Nothing is due")
    assert systemd.next() == ["WATCHDOG=1", "STATUS=Nothing is due"]


def test_a_stop_is_told_and_its_status_stays(address: str, systemd: Hearing) -> None:
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    manager.alive("Serving")
    assert "READY=1" in systemd.next()
    manager.stopping()
    assert systemd.next() == ["STOPPING=1", "STATUS=Stopping"]
    now[0] += 60
    manager.alive("Serving")
    assert systemd.next() == ["WATCHDOG=1"]


def test_a_start_that_takes_long_asks_for_time_as_long_as_it_lasts(address: str, systemd: Hearing) -> None:
    with ServiceManager(address).starting("Opening the database"):
        assert systemd.next() == ["STATUS=Opening the database", "EXTEND_TIMEOUT_USEC=120000000"]
    assert not any(thread.name == "start" for thread in threading.enumerate())


def test_an_abstract_address_is_one_too() -> None:
    name = f"socialpub-test-{os.getpid()}"
    hearing = Hearing(f"\0{name}")
    ServiceManager(f"@{name}").alive("Serving")
    assert hearing.next() == ["READY=1", "STATUS=Serving"]
    hearing.close()


def test_nobody_listening_is_no_failure(address: str) -> None:
    for manager in (ServiceManager(), ServiceManager(address)):
        with manager.starting("Opening"):
            manager.alive("Serving")
        manager.stopping()


def test_a_report_that_cannot_be_taken_at_once_is_left_out(address: str, systemd: Hearing) -> None:
    now = [0.0]
    manager = ServiceManager(address, monotonic=lambda: now[0])
    for _ in range(2000):  # more than the socket holds, and nobody reads
        now[0] += 60
        manager.alive("Serving")
    assert systemd.next() == ["READY=1", "STATUS=Serving"]


def test_what_was_given_is_taken_from_the_environment() -> None:
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
    from_environment(environ)
    assert environ == {"HOME": "/"}, "a child would speak, or listen, in our name"


@pytest.mark.parametrize("count", ["2", "", "-1", "two"])
def test_sockets_for_another_process_are_left_alone(count: str) -> None:
    environ = {"LISTEN_FDS": count, "LISTEN_PID": str(os.getpid() + 1)}
    assert from_environment(environ).descriptors == ()
    assert environ == {}
    assert count == "2" or from_environment(environ | {"LISTEN_PID": str(os.getpid())}).descriptors == ()


def test_where_the_sockets_are_is_told_as_it_is_configured() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        socket.socket(socket.AF_UNIX) as other,
    ):
        manager = ServiceManager(descriptors=(four.fileno(), six.fileno(), other.fileno()))
        assert manager.addresses == [f"127.0.0.1:{four.getsockname()[1]}", f"[::1]:{six.getsockname()[1]}"]
        assert four.fileno() > 0 and socket.create_connection(four.getsockname()).close() is None, "it is open still"


def test_a_child_gets_neither_the_sockets_nor_the_variables() -> None:
    """In a process of its own, whose descriptor 3 is free for the socket."""
    program = """
import os, socket, subprocess, sys
from socialpub.core.systemd import from_environment
listening = socket.create_server(("127.0.0.1", 0))
os.dup2(listening.fileno(), 3, inheritable=True)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
assert from_environment(os.environ).descriptors == (3,)
child = "import os; print('LISTEN_FDS' in os.environ); os.system('ls -l /proc/self/fd')"
print(subprocess.run([sys.executable, "-c", child], close_fds=False, capture_output=True, text=True).stdout)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False")
    assert "/dev/null" in done.stdout or "pipe:" in done.stdout
    assert "socket:" not in done.stdout
