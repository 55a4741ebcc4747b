"""The web process: listens, serves requests, and stops without breaking a request."""

import asyncio
import contextlib
import errno
import resource
import signal
import socket
from collections.abc import Iterator
from functools import partial
from typing import cast

import uvicorn

from socialpub.core import logging, machine
from socialpub.core.errors import OperatorError
from socialpub.core.listen import find_sockets, move_socket
from socialpub.core.sd_notify import format_address, format_host
from socialpub.core.settings.loader import Settings
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.http.connections import MAX_CONNECTIONS, ConnectionLimits, ConnectionWatch, GuardedProtocol
from socialpub.web.http.limits import CLOSE

# --- listening -------------------------------------------------------------------------------------------------------

log = logging.get_logger(__name__)

BACKLOG = 2048
RESERVED_DESCRIPTORS = 200
"""The descriptors for the database connections of each reading thread, and for other files of the process."""
MAX_DESCRIPTORS = 1 << 20
"""The kernel's default maximum per process, used if the hard limit is infinite."""


def open_for(rt: Runtime) -> list[socket.socket]:
    """Return the listening sockets of systemd or of `listen`. Raises OperatorError."""
    descriptors = rt.service_manager.descriptors
    if not descriptors:
        return bind(rt.settings)
    sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    if not all(
        listener.family in (socket.AF_INET, socket.AF_INET6)
        and listener.type == socket.SOCK_STREAM
        and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        for listener in sockets
    ):
        for listener in sockets:
            listener.close()
        raise OperatorError(
            "The socket from systemd does not listen for TCP connections.",
            "In socialpub-web.socket, set ListenStream= to an IP address and a port, such as 127.0.0.1:8000, and "
            "remove Accept=yes.",
        )
    for listener in sockets:
        listener.setblocking(False)
    try:
        configured = {address[:2] for *_, address in find_sockets(rt.settings)}
    except (OSError, OperatorError):
        configured = set()
    if {listener.getsockname()[:2] for listener in sockets} != configured:
        log.warning(
            "the web process uses the address of systemd's socket instead of `listen`",
            remedy=f"{move_socket()}.",
            address=addresses(sockets),
            listen=rt.settings.listen,
        )
    return sockets


def addresses(sockets: list[socket.socket]) -> str:
    """Return the addresses in the form of `listen`, separated by commas."""
    return ", ".join(map(format_address, sockets))


def bind(settings: Settings) -> list[socket.socket]:
    """Open one listening socket per address of `listen`. Raises OperatorError."""
    sockets: list[socket.socket] = []
    where = settings.listen
    try:
        for family, kind, protocol, _, address in find_sockets(settings):
            where = format_host(*address[:2])
            listener = socket.socket(family, kind, protocol)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # [::] serves IPv4 as well. The default of the machine may differ.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise _cannot_listen(where, error) from error
    return sockets


def _cannot_listen(address: str, error: OSError) -> OperatorError:
    if error.errno == errno.EADDRINUSE:
        return OperatorError(
            f"{address} is in use by another program.",
            "Stop that program (possibly another socialpub), or set `listen` to another port.",
        )
    if error.errno == errno.EACCES:
        return OperatorError(
            f"This user may not listen on {address}.",
            "Set `listen` to a port above 1023, and let a proxy listen on the lower port.",
        )
    return OperatorError(
        f"Cannot listen on {address}: {error.strerror or error}.",
        "Set `listen` to an IP address of this host, such as 127.0.0.1:8000.",
    )


# --- descriptors -----------------------------------------------------------------------------------------------------


def raise_descriptors() -> int:
    """Raise the soft limit of file descriptors to the hard limit, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("cannot raise the limit of file descriptors", soft=soft, wanted=wanted, exc_info=error)
            return soft
        return wanted
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int) -> int:
    """Return the maximum number of connections of a process. Each connection may also need an open file."""
    return max(1, min(MAX_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))


# --- serving ---------------------------------------------------------------------------------------------------------

ADMIT_SECONDS = 0.1
"""The time after the signal during which connections are still accepted, so that connected clients get a response."""
IDLE_GRACE_SECONDS = 2.0
"""A connection without a request stays open for this time, in case its client is sending a request."""
BUSY_GRACE_SECONDS = 10.0
"""The maximum wait for running requests."""

_POLL_SECONDS = 0.05


def run(rt: Runtime, sockets: list[socket.socket]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP. Return the exit code."""
    machine.prepare_to_serve()
    app = create_app(rt)
    descriptors = raise_descriptors()
    server = Server(app, ConnectionLimits(connections=connections_within(descriptors)))
    log.info("listening", address=addresses(sockets), base_url=rt.settings.base_url)
    notifier = Notifier(rt, is_fallback=True)
    notifier.start()
    server.run(sockets=sockets)
    notifier.join()
    log.info("stopped")
    return 0


class Server(uvicorn.Server):
    """uvicorn with connection limits and a graceful stop."""

    def __init__(self, app: App, limits: ConnectionLimits | None = None) -> None:
        self.app = app
        self.watch = ConnectionWatch(limits or ConnectionLimits(), app.state.trusted_proxies.contains)
        self._service_manager = app.state.rt.service_manager
        self._draining: asyncio.Task[None] | None = None
        self._hung_up = False
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=cast("type[GuardedProtocol]", partial(GuardedProtocol, self.watch)),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                # Longer than the keep-alive of proxies: the proxy must close the connection first.
                timeout_keep_alive=75,
                timeout_graceful_shutdown=2,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replace uvicorn's handlers, which send the signal again after a clean stop."""
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not started by nohup
            handlers[signal.SIGHUP] = self.hang_up
        for signum, handler in handlers.items():
            loop.add_signal_handler(signum, handler)
        try:
            yield
        finally:
            for signum in handlers:
                loop.remove_signal_handler(signum)
            if self._hung_up:
                # The worker of `serve` may still be stopping, and another SIGHUP must not interrupt it.
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def on_tick(self, counter: int) -> bool:
        self._service_manager.alive("Serving")
        if counter % 10 == 0:
            self.watch.check(self._connections(), asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Start to drain. The second call ends the server at once."""
        self.app.state.rt.stopping.set()
        if self._draining is None:
            self._service_manager.stopping()
            self._draining = asyncio.get_running_loop().create_task(self.drain())
        else:
            self.should_exit = self.force_exit = True

    def hang_up(self) -> None:
        """Start to drain once, although the shell and the kernel may both send SIGHUP."""
        if not self._hung_up:
            self._hung_up = True
            self.stop()

    async def drain(self) -> None:
        """Wait for running requests, then end the server."""
        log.info("stopping", connections=len(self.server_state.connections))
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        # uvicorn renews its headers from the configuration every second, so both are changed.
        self.config.encoded_headers.append(CLOSE)
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
        for connection in self._busy():
            connection.cycle.keep_alive = False
        self.app.state.long_poll.stop()
        for work in self.app.state.long_work:
            work.cancel()
        if not self._service_manager.descriptors:  # with systemd's socket, new clients wait for the next process
            await asyncio.sleep(ADMIT_SECONDS)
        for listener in self.servers:
            listener.close()
        while self.server_state.connections:
            waited = loop.time() - began_at
            if waited >= (BUSY_GRACE_SECONDS if self._busy() else IDLE_GRACE_SECONDS):
                break
            await asyncio.sleep(_POLL_SECONDS)
        self.should_exit = True

    def _busy(self) -> list[GuardedProtocol]:
        return [
            connection
            for connection in self._connections()
            if connection.cycle is not None and not connection.cycle.response_complete
        ]

    def _connections(self) -> list[GuardedProtocol]:
        return cast("list[GuardedProtocol]", list(self.server_state.connections))
