"""Services that messages are sent to, on this machine: a mail server, and one for all that speak HTTP."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword


class HttpService(ThreadingHTTPServer):
    """Accepts every message, or responds as configured."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[tuple[str, dict[str, Any]]] = []
        """Path and body of each request."""
        self.status = 200
        self.hangs = False
        self.asked = threading.Event()
        self.released = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: HttpService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.taken.append((self.path, json.loads(body)))
        self.server.asked.set()
        if self.server.hangs:
            self.server.released.wait()
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def http_service() -> Iterator[HttpService]:
    with HttpService() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


class MailServer:
    """Accepts mail from clients that know the password."""

    def __init__(self) -> None:
        self.taken: list[Message] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        self.taken.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"

    def let_in(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, who: LoginPassword) -> AuthResult:
        known = (who.login, who.password) == (b"owner", b"mail-password")
        return AuthResult(success=known, handled=False)


@contextmanager
def mail_server() -> Iterator[tuple[MailServer, int]]:
    """The server, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mail = MailServer()
    controller = Controller(mail, "127.0.0.1", port, authenticator=mail.let_in, auth_require_tls=False)
    controller.start()
    yield mail, port
    controller.stop()
