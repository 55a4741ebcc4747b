"""What systemd passes to a service, and what the service reports: listening sockets, and that it works.

`alive` reports that something was just done, not that the process exists. A service that hangs sends no report, so
systemd ends it. Without systemd, every call does nothing.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping

_VARIABLES = (
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "LISTEN_PIDFDID",
)
_FIRST_DESCRIPTOR = 3
_STATUS_SECONDS = 10.0
"""How often the status is sent, where no watchdog asks more often."""
_START_SECONDS = 60.0
"""What a start that takes long asks for, again and again."""


class ServiceManager:
    """`address` is the socket that takes our reports, `watchdog_seconds` how long we may be silent, `descriptors` are
    the listening sockets that were opened for us."""

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
        self._said_at: float | None = None
        self._stopping = False

    @property
    def addresses(self) -> list[str]:
        """Where those sockets are, written as `listen` is. Of what is no TCP socket nothing is known."""
        found = []
        for descriptor in self.descriptors:
            with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(descriptor)) as listener:
                found.append(format_address(listener))
        return found

    @contextlib.contextmanager
    def starting(self, status: str) -> Iterator[None]:
        """Ask for more time as long as this lasts, however long: what is cut short here begins again from nothing."""
        if self._address is None:
            yield
            return
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                self._say(f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={int(2 * _START_SECONDS * 1e6)}")
                done.wait(_START_SECONDS)

        thread = threading.Thread(target=ask, name="start", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def alive(self, status: str) -> None:
        """Something was done just now: the first time, that the service is ready. Cheap: it may be said at any rate."""
        now = self._monotonic()
        if self._said_at is not None and now - self._said_at < self._every_seconds:
            return
        state = "READY=1" if self._said_at is None else "WATCHDOG=1"
        self._said_at = now
        self._say(state, *([] if self._stopping else [f"STATUS={status}"]))

    def stopping(self) -> None:
        """Report that the service stops."""
        self._stopping = True
        self._say("STOPPING=1", "STATUS=Stopping")

    def _say(self, *lines: str) -> None:
        """Send a report. A report that is lost is no failure: systemd then ends the service."""
        if self._address is None:
            return
        # An abstract name begins with a zero byte, which no variable can hold.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(), address)


def format_address(listener: socket.socket) -> str:
    """`127.0.0.1:8000`, `[::1]:8000`. Raises ValueError for a socket that has no port."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def from_environment(environ: MutableMapping[str, str]) -> ServiceManager:
    """What the variables of a service name. They are removed: a child that found them would speak for this process."""
    given = {name: environ.pop(name) for name in _VARIABLES if name in environ}
    descriptors: tuple[int, ...] = ()
    if given.get("LISTEN_PID") == str(os.getpid()):
        count = _number(given.get("LISTEN_FDS"))
        descriptors = tuple(range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + count))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
    microseconds = _number(given.get("WATCHDOG_USEC"))
    if given.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        microseconds = 0
    return ServiceManager(given.get("NOTIFY_SOCKET") or None, microseconds / 1e6 or None, descriptors)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
