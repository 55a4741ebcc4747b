"""The way to a server of Bluesky: every request passes through it, and a test may spoil the next ones.

The server behind it does not notice a fault, so the real server and the stand-in meet the same ones.
"""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Call:
    """One request. `status` is the server's own, or None if the request did not reach it."""

    name: str
    method: str
    url: str
    token: str
    body: bytes
    status: int | None = None
    is_faulty: bool = False


class Exchange:
    """One request under way, as a fault sees it."""

    def __init__(self, handler: "_Handler", call: Call) -> None:
        self.call = call
        self._handler = handler

    def forward(self) -> Answer:
        """Let the server do its work."""
        answer = self._handler.server.front.ask(self._handler.command, self.call, dict(self._handler.headers.items()))
        self.call.status = answer.status
        return answer

    def send(self, answer: Answer) -> None:
        self._handler.answer(answer)

    def cut(self) -> None:
        self._handler.cut()


Fault = Callable[[Exchange], None]


def drop_before(exchange: Exchange) -> None:
    """The request is lost."""
    exchange.cut()


def drop_after(exchange: Exchange) -> None:
    """The response is lost."""
    exchange.forward()
    exchange.cut()


def answering(
    status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, *, after_effect: bool = False
) -> Fault:
    """Something in front of the server responds in its place."""

    def answer(exchange: Exchange) -> None:
        if after_effect:
            exchange.forward()
        exchange.send(Answer(status, body, headers or {}))

    return answer


def changing(change: Callable[[Answer], Answer]) -> Fault:
    """The server lies."""
    return lambda exchange: exchange.send(change(exchange.forward()))


class Held:
    """A request that waits before or after its effect until `release`. The caller may be gone by then."""

    def __init__(self, when: str) -> None:
        self._when = when
        self._arrived = threading.Event()
        self._released = threading.Event()
        self._done = threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        answer = exchange.forward() if self._when == "after" else None
        self._arrived.set()
        self._released.wait(60)
        try:
            exchange.send(answer or exchange.forward())
        except OSError:
            """The caller has gone."""
        finally:
            self._done.set()

    def wait_until_arrived(self) -> None:
        assert self._arrived.wait(60), "no request arrived"

    def release(self) -> None:
        """Let it go on, and wait until it has taken effect."""
        self.wait_until_arrived()
        self._released.set()
        assert self._done.wait(60), "the request was not answered"


@dataclass
class _Planned:
    name: str
    fault: Fault
    times: int
    skipping: int


class Front:
    """Listens on a port of this machine. `targets` are addresses behind it by the path that leads there."""

    def __init__(self, port: int, targets: Mapping[str, str]) -> None:
        self.port = port
        self.calls: list[Call] = []
        """All requests, oldest first."""
        self.forwarded_for = "192.0.2.1"
        """The address from which the requests seem to come. The server counts its limits by it."""
        self._targets = sorted(targets.items(), key=lambda one: -len(one[0]))
        self._faults: list[_Planned] = []
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.up()

    def next(self, name: str, fault: Fault, *, times: int = 1, skipping: int = 0) -> None:
        """Spoil the next requests of a method, such as `com.atproto.repo.putRecord`."""
        with self._lock:
            self._faults.append(_Planned(name, fault, times, skipping))

    def hold(self, name: str, when: str) -> Held:
        """Hold the next request of a method `before` or `after` its effect."""
        held = Held(when)
        self.next(name, held)
        return held

    def calls_of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def begin_story(self) -> None:
        """Forget the requests and faults of the story before."""
        with self._lock:
            self._faults.clear()
            self.calls.clear()
            *network, last = self.forwarded_for.split(".")
            self.forwarded_for = ".".join([*network, str(int(last) % 250 + 1)])

    def up(self) -> None:
        assert self._server is None
        self._server = _Server(self)

    def down(self) -> None:
        """Refuse connections until `up`."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.down()
        yield
        self.up()

    def note(self, call: Call) -> Fault | None:
        """Add the request to the calls. Return the fault that it meets."""
        with self._lock:
            self.calls.append(call)
            for planned in self._faults:
                if planned.name != call.name:
                    continue
                if planned.skipping:
                    planned.skipping -= 1
                    return None
                planned.times -= 1
                if not planned.times:
                    self._faults.remove(planned)
                call.is_faulty = True
                return planned.fault
        return None

    def ask(self, method: str, call: Call, headers: Mapping[str, str]) -> Answer:
        """Ask the server behind."""
        path, address = next((path, address) for path, address in self._targets if call.url.startswith(path))
        target = urlsplit(address)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
        try:
            sent = {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}
            sent |= {"X-Forwarded-For": self.forwarded_for}
            body = call.body if method in ("POST", "PUT") else None
            connection.request(method, target.path + call.url.removeprefix(path), body, sent)
            response = connection.getresponse()
            kept = {name: value for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP}
            return Answer(response.status, response.read(), kept)
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, front: Front) -> None:
        self.front = front
        super().__init__(("127.0.0.1", front.port), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that has gone is no finding."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 60

    def answer(self, answer: Answer) -> None:
        # Without the date of this machine: the clocks of the servers are others.
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        name = urlsplit(self.path).path.rpartition("/xrpc/")[2]
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        exchange = Exchange(self, Call(name, self.command, self.path, token, body))
        fault = self.server.front.note(exchange.call)
        if fault is None:
            exchange.send(exchange.forward())
        else:
            fault(exchange)

    do_GET = do_POST = do_PUT = do_HEAD = _pass

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
