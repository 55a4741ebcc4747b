"""The way to a server of Bluesky: every request passes through it, and a test may spoil the next ones.

The server behind it does not notice a fault, so the real server and the stand-in meet the same ones.
"""

import http.client
import threading
from collections.abc import Callable, Mapping
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


Fault = Callable[[Exchange], None]


def answering(status: int, body: bytes, headers: Mapping[str, str]) -> Fault:
    """Something in front of the server responds in its place."""
    return lambda exchange: exchange.send(Answer(status, body, headers))


def changing(change: Callable[[Answer], Answer]) -> Fault:
    """The server lies."""
    return lambda exchange: exchange.send(change(exchange.forward()))


class Front:
    """Listens on a port of this machine. `targets` are addresses behind it by the path that leads there."""

    def __init__(self, port: int, targets: Mapping[str, str]) -> None:
        self.port = port
        self.calls: list[Call] = []
        """All requests, oldest first."""
        self.forwarded_for = "192.0.2.1"
        """The address from which the requests seem to come. The server counts its limits by it."""
        self._targets = sorted(targets.items(), key=lambda one: -len(one[0]))
        self._faults: list[tuple[str, Fault]] = []
        self._lock = threading.Lock()
        self._server = _Server(self)

    def next(self, name: str, fault: Fault) -> None:
        """Spoil the next request of a method, such as `com.atproto.repo.putRecord`."""
        with self._lock:
            self._faults.append((name, fault))

    def calls_of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def begin_story(self) -> None:
        """Forget the requests and faults of the story before."""
        with self._lock:
            self._faults.clear()
            self.calls.clear()
            *network, last = self.forwarded_for.split(".")
            self.forwarded_for = ".".join([*network, str(int(last) % 250 + 1)])

    def close(self) -> None:
        self._server.close()

    def note(self, call: Call) -> Fault | None:
        """Add the request to the calls. Return the fault that it meets."""
        with self._lock:
            self.calls.append(call)
            for planned in self._faults:
                if planned[0] == call.name:
                    self._faults.remove(planned)
                    return planned[1]
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
