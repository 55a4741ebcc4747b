"""Limits of request bodies, as one ASGI middleware: size, time and memory (contract 1.7, 1.20).

A body in memory has at most 8 KiB without a valid key or session, and 1 MiB with one. It is complete within 20 seconds,
and all such bodies together use at most 64 MiB. A body that goes to a file only needs progress.

If the server closes a connection while the client sends, the client may never read the response. So a response before
the whole body is sent first. Then the rest of the body is discarded, up to a limit, and the connection ends.
"""

import asyncio
import contextlib

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from socialpub.core import units
from socialpub.core.errors import InvalidRequest, PayloadTooLarge, RequestTimeout, Unavailable

MAX_BODY_BYTES = 1 << 20
"""The limit of a JSON body (contract 1.7)."""
MAX_ANONYMOUS_BODY_BYTES = 8 * 1024
"""The limit for a request without a valid key or session (contract 1.20)."""
MAX_MEMORY_BYTES = 64 * 1024 * 1024
COMPLETE_SECONDS = 20.0
"""The deadline for a body in memory, and for a text field of a form."""
STALL_SECONDS = 60.0
"""The time without data after which the sender of a file counts as disconnected."""
MAX_DISCARDED_BYTES = 8 * 1024 * 1024
MAX_DISCARDED_SECONDS = 2.0

CLOSE = (b"connection", b"close")


class BodyMemory:
    """The memory that all request bodies use together."""

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class RequestBody:
    """The body of one request, in `request.state.body_limits`."""

    def __init__(self, memory: BodyMemory, scope: Scope, receive: Receive, send: Send) -> None:
        sent = dict(scope["headers"])  # faster than Starlette's Headers, for every request
        length = sent.get(b"content-length", b"")
        self.declared_bytes = int(length) if length.isdigit() else None
        """None for a chunked body."""
        self.is_whole = not self.declared_bytes and b"transfer-encoding" not in sent
        self.max_bytes = MAX_ANONYMOUS_BODY_BYTES
        """A valid key or session raises this limit."""
        self.goes_to_file = False
        """The handler writes each piece to a file."""
        self._received_bytes = 0
        self._held_bytes = 0
        self._is_started = False
        self._expects_continue = sent.get(b"expect", b"").lower() == b"100-continue"
        self._deadline = asyncio.get_running_loop().time() + COMPLETE_SECONDS
        self._closes = False
        self._memory, self._receive, self._send = memory, receive, send

    async def receive(self) -> Message:
        """Receive the next piece. Raises PayloadTooLarge, RequestTimeout, Unavailable and InvalidRequest (stalled)."""
        if self.is_whole:
            return await self._receive()
        if not self.goes_to_file:
            self.check_size(self.declared_bytes or 0)
        self._is_started = True
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + STALL_SECONDS if self.goes_to_file else self._deadline):
                message = await self._receive()
        except TimeoutError:
            if self.goes_to_file:
                text = f"No data arrived for {STALL_SECONDS:.0f} seconds. Send the request again."
                raise InvalidRequest.at(message=text) from None
            raise RequestTimeout(
                f"The request body was not complete within {COMPLETE_SECONDS:.0f} seconds. Send the request again."
            ) from None
        self.is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        if not self.goes_to_file:
            piece_bytes = len(message.get("body", b""))
            self._received_bytes += piece_bytes
            self.check_size(self._received_bytes)
            self.hold(piece_bytes)
        return message

    def check_size(self, size_bytes: int) -> None:
        if size_bytes <= self.max_bytes:
            return
        detail = f"The request body may have at most {units.size(self.max_bytes)}"
        if self.max_bytes == MAX_ANONYMOUS_BODY_BYTES:
            raise PayloadTooLarge(f"{detail} without a valid API key or session.")
        raise PayloadTooLarge(f"{detail}. Upload media instead of sending it inside the JSON.")

    def hold(self, size_bytes: int) -> None:
        """Count bytes that stay in memory until the end of the request. Raises Unavailable."""
        if self._memory.used_bytes + size_bytes > self._memory.max_bytes:
            raise Unavailable("Request bodies use all available memory. Send the request again in a few seconds.")
        self._memory.used_bytes += size_bytes
        self._held_bytes += size_bytes

    def release(self) -> None:
        self._memory.used_bytes -= self._held_bytes
        self._held_bytes = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            # uvicorn discards the rest of a small body, and the connection stays open.
            is_large = self.declared_bytes is None or self.declared_bytes > MAX_BODY_BYTES
            has_ended = message["status"] in (PayloadTooLarge.status, RequestTimeout.status)
            self._closes = not self.is_whole and (is_large or has_ended or self._waits_for_continue)
            if self._closes:
                message = {**message, "headers": [*message["headers"], CLOSE]}
        elif self._closes and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            if not self._waits_for_continue:
                await self._discard()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    @property
    def _waits_for_continue(self) -> bool:
        """Whether the client still waits for `100 Continue` before it sends the body."""
        return self._expects_continue and not self._is_started

    async def _discard(self) -> None:
        left = MAX_DISCARDED_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_DISCARDED_SECONDS):
                while left > 0:
                    message = await self._receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
                    left -= len(message.get("body", b""))


class BodyLimits:
    def __init__(self, app: ASGIApp, memory: BodyMemory) -> None:
        self.app = app
        self.memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = scope["state"]["body_limits"] = RequestBody(self.memory, scope, receive, send)
        try:
            if body.is_whole:
                await self.app(scope, receive, send)
            else:
                await self.app(scope, body.receive, body.send)
        finally:
            body.release()
            del scope["state"]["body_limits"]  # without this reference cycle, the scope is freed at once


async def discard(request: Request) -> None:
    """Read a body that no handler reads, so that a malformed request does not change anything."""
    if not request.state.body_limits.is_whole:
        await request.body()
