"""The web process: listens, answers, and stops without breaking anybody's request.

A stop drains. The listeners close once the connections that had already been made were accepted, every answer says that
its connection ends, whoever waits is answered with what is true; only then the server ends. Closing idle connections at
once would break the request that a client is just sending over one.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from functools import partial
from typing import cast

import uvicorn

from socialpub.core import logging, malloc_arenas
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import Runtime
from socialpub.web import listeners
from socialpub.web.answer import CLOSE
from socialpub.web.app import App, create_app
from socialpub.web.connection_limits import ConnectionLimits, ConnectionWatch, connections_within, raise_descriptors
from socialpub.web.http_protocol import HttpProtocol

log = logging.get_logger("socialpub.web.server")

ADMIT_SECONDS = 0.1
"""How long connections are accepted after the signal, so that nobody is refused who had already connected."""
IDLE_GRACE_SECONDS = 2.0
"""How long a connection without a request is kept, in case its client is just sending one."""
BUSY_GRACE_SECONDS = 10.0
"""How long requests that run are waited for."""

_POLL_SECONDS = 0.05


def run(rt: Runtime, sockets: list[socket.socket]) -> int:
    """Serve on these listening sockets (`listeners.py`) until SIGTERM, SIGINT or SIGHUP; the exit code."""
    malloc_arenas.limit()
    app = create_app(rt)
    descriptors = raise_descriptors()
    server = Server(app, ConnectionLimits(connections=connections_within(descriptors)))
    log.info("listening", address=listeners.addresses(sockets), base_url=rt.settings.base_url)
    notifier = Notifier(rt, stands_in=True)
    notifier.start()
    server.run(sockets=sockets)
    notifier.join()
    log.info("stopped")
    return 0


class Server(uvicorn.Server):
    """uvicorn, with limits for each connection and a stop that drains."""

    def __init__(self, app: App, limits: ConnectionLimits | None = None) -> None:
        self.app = app
        self.watch = ConnectionWatch(limits or ConnectionLimits(), app.state.trusted_proxies.holds)
        self._service_manager = app.state.rt.service_manager
        self._draining: asyncio.Task[None] | None = None
        self._hung_up = False
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=cast("type[HttpProtocol]", partial(HttpProtocol, self.watch)),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=listeners.BACKLOG,
                # Longer than a proxy keeps its own: the side that waits less closes, and that must not be us.
                timeout_keep_alive=75,
                timeout_graceful_shutdown=2,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours instead of uvicorn's, which would end the process by the signal once more after a clean stop."""
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nobody ran this with nohup
            handlers[signal.SIGHUP] = self.hang_up
        for signum, handler in handlers.items():
            loop.add_signal_handler(signum, handler)
        try:
            yield
        finally:
            for signum in handlers:
                loop.remove_signal_handler(signum)
            if self._hung_up:
                # The worker of a `serve` may still have to end, and another one tells nothing new.
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self._service_manager.alive("Serving")
        if counter % 10 == 0:
            self.watch.sweep(self._connections(), asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Begin to drain; called again, end now."""
        self.app.state.rt.stopping.set()
        if self._draining is None:
            self._service_manager.stopping()
            self._draining = asyncio.get_running_loop().create_task(self.drain())
        else:
            self.should_exit = self.force_exit = True

    def hang_up(self) -> None:
        """The terminal was closed: begin to drain. Shell and kernel may both tell of it, which is one request."""
        if not self._hung_up:
            self._hung_up = True
            self.stop()

    async def drain(self) -> None:
        """Let every request that has begun end, then end the server."""
        log.info("stopping", connections=len(self.server_state.connections))
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        # uvicorn renews its headers from the configuration every second, so both are changed.
        self.config.encoded_headers.append(CLOSE)
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
        for connection in self._busy():
            connection.cycle.keep_alive = False
        self.app.state.long_poll.stop()
        if not self._service_manager.descriptors:  # else who connects now waits for the next process
            await asyncio.sleep(ADMIT_SECONDS)
        for listener in self.servers:
            listener.close()
        while self.server_state.connections:
            waited = loop.time() - began_at
            if waited >= (BUSY_GRACE_SECONDS if self._busy() else IDLE_GRACE_SECONDS):
                break
            await asyncio.sleep(_POLL_SECONDS)
        self.should_exit = True

    def _busy(self) -> list[HttpProtocol]:
        """The connections over which a request is being answered."""
        return [each for each in self._connections() if each.cycle is not None and not each.cycle.response_complete]

    def _connections(self) -> list[HttpProtocol]:
        return cast("list[HttpProtocol]", list(self.server_state.connections))
