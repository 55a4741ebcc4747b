"""Reports to the service manager (systemd), and the listening sockets that it opens.

`ServiceManager.alive` reports finished work, not only that the process exists. A service that hangs sends no report, so
systemd ends it. Without systemd, every call does nothing.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping

_VARIABLES = (
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID",
)  # fmt: skip
_FIRST_DESCRIPTOR = 3
_STATUS_SECONDS = 10.0
"""The interval of status reports, unless a watchdog needs a shorter interval."""
_START_SECONDS = 60.0
"""The interval in which a long start asks for more time."""


class ServiceManager:
    """Reports to systemd, and has the listening sockets (`descriptors`) that systemd opened for this process.

    `address` is the socket for reports. `watchdog_seconds` is the longest time without a report.
    """

    def __init__(
        self,
        address: str | None = None,
        watchdog_seconds: float | None = None,
        descriptors: tuple[int, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.descriptors = descriptors
        self._address = address
        self._every_seconds = min(_STATUS_SECONDS, watchdog_seconds / 4 if watchdog_seconds else _STATUS_SECONDS)
        self._monotonic = monotonic
        self._reported_at: float | None = None
        self._stopping = False

    @property
    def addresses(self) -> list[str]:
        """The addresses of the TCP sockets among `descriptors`, in the form of `listen`."""
        names = []
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(descriptor)) as listener:
                names.append(format_address(listener))
        return names

    @contextlib.contextmanager
    def starting(self, status: str) -> Iterator[None]:
        """Ask for more time until the start has ended: an interrupted start begins again from nothing."""
        if self._address is None:
            yield
            return
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                self._report(f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={int(2 * _START_SECONDS * 1e6)}")
                done.wait(_START_SECONDS)

        thread = threading.Thread(target=ask, name="start", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def alive(self, status: str) -> None:
        """Report that work was done. The first report says that the service is ready. Calls are cheap."""
        now = self._monotonic()
        if self._reported_at is not None and now - self._reported_at < self._every_seconds:
            return
        state = "READY=1" if self._reported_at is None else "WATCHDOG=1"
        self._reported_at = now
        self._report(state, *([] if self._stopping else [f"STATUS={status}"]))

    def stopping(self) -> None:
        self._stopping = True
        self._report("STOPPING=1", "STATUS=Stopping")

    def _report(self, *lines: str) -> None:
        """Send a report. A lost report is not an error: systemd ends a service without reports."""
        if self._address is None:
            return
        # An abstract name begins with a zero byte, which a variable cannot contain.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(), address)


def format_address(listener: socket.socket) -> str:
    """Return `127.0.0.1:8000` or `[::1]:8000`. Raise ValueError for a socket without a port."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError
    return format_host(*listener.getsockname()[:2])


def format_host(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def find_service_manager(environ: MutableMapping[str, str]) -> ServiceManager:
    """Read systemd's variables and remove them: otherwise, a child process would report for this process."""
    variables = {name: environ.pop(name) for name in _VARIABLES if name in environ}
    descriptors: tuple[int, ...] = ()
    if variables.get("LISTEN_PID") == str(os.getpid()):
        count = _number(variables.get("LISTEN_FDS"))
        descriptors = tuple(range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + count))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
    microseconds = _number(variables.get("WATCHDOG_USEC"))
    if variables.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        microseconds = 0
    return ServiceManager(variables.get("NOTIFY_SOCKET") or None, microseconds / 1e6 or None, descriptors)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
