"""A host of files on loopback, whose responses a test writes byte by byte."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Play = Callable[[asyncio.StreamWriter], Awaitable[None]]


def response(body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = -1) -> bytes:
    """Return a complete response. `length` is the announced length: by default the real one, None for no length."""
    announced = [] if length is None else [f"Content-Length: {len(body) if length == -1 else length}"]
    head = [f"HTTP/1.1 {status}", *announced, "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def redirect(location: str, body: bytes = b"", *headers: str) -> bytes:
    return response(body, f"Location: {location}", *headers, status="302 Found")


class FileHost:
    """Use it in an `async with`, or `start` and `stop` it on one loop. A path without a response is 404."""

    def __init__(
        self,
        responses: dict[str, bytes | Play] | None = None,
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.responses = responses or {}
        self.heads: list[str] = []
        """The heads of all requests."""
        self.address = address
        self._tls = tls
        self.port = 0
        self.most_open = 0
        """The highest number of simultaneous requests."""
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> list[str]:
        """The requested paths, without their queries."""
        return [head.split()[1].partition("?")[0] for head in self.heads]

    def url(self, path: str = "/a", host: str = "") -> str:
        return f"http{'s' if self._tls else ''}://{host or self.address}:{self.port}{path}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self.address, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def __aenter__(self) -> "FileHost":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        self.most_open = max(self.most_open, len(self._serving))
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            played = self.responses.get(head.split()[1].partition("?")[0], response(status="404 Not Found"))
            if isinstance(played, bytes):
                writer.write(played)
            else:
                await played(writer)
            await writer.drain()
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


def certificate(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the context of a host with a certificate for this name, and the context of a client that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    public = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "host.pem").write_bytes(private + public)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "host.pem")
    return server, ssl.create_default_context(cadata=public.decode())
