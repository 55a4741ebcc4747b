"""Limits for everything of a response that is not content: heads, chunk sizes and trailers.

h11 parses in Python. A line costs up to 0.1 ms and may have two bytes, so a host could stop an event loop with a full
buffer of `HTTP/1.1 100` or of tiny chunks. Here h11 gets a few lines at a time. Before the final head, and between two
pieces of content, a host may send only a limited number of bytes and lines.
"""

import asyncio
from typing import Any

import httpx2

from socialpub.providers.failures import MAX_FRAMING_BYTES, MAX_FRAMING_LINES, TooMuchFraming

LINES_AT_ONCE = 100
BYTES_AT_ONCE = 16 * 1024


async def limit(event: str, info: dict[str, Any], turn: asyncio.Lock | None = None) -> None:
    """Limit a new connection. A request's `trace` must pass its events to this function.

    Only one of the connections with the same `turn` is parsed in each iteration of the event loop.
    """
    if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        _Framing(info["return_value"], turn)


def end_head(response: httpx2.Response, *, limits_content: bool) -> None:
    """Declare that the head has arrived. With `limits_content`, `note_content` must follow for each piece."""
    if (framing := _find(response)) is not None:
        framing.is_limited = limits_content and "transfer-encoding" in response.headers
        framing.reset()


def note_content(response: httpx2.Response) -> None:
    if (framing := _find(response)) is not None:
        framing.reset()


def _find(response: httpx2.Response) -> "_Framing | None":
    # A test's transport has no stream.
    return getattr(response.extensions.get("network_stream"), "framing", None)


class _Framing:
    """The counts of one connection. It replaces the methods of the stream."""

    def __init__(self, stream: Any, turn: asyncio.Lock | None) -> None:
        self._receive, self._send = stream.read, stream.write
        self._turn = turn or asyncio.Lock()
        self._pending = b""
        self.is_limited = True
        self.reset()
        stream.framing, stream.read, stream.write = self, self._read, self._write

    def reset(self) -> None:
        self._bytes, self._lines = MAX_FRAMING_BYTES, MAX_FRAMING_LINES

    async def _write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.is_limited = True  # the head of the next response follows
        self.reset()
        await self._send(buffer, timeout)

    async def _read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._bytes or not self._lines:
            raise TooMuchFraming
        if not self._pending:
            self._pending = await self._receive(max_bytes, timeout)
        piece, self._pending = self._pending, b""
        if self.is_limited:
            end = _end_of_lines(piece, min(LINES_AT_ONCE, self._lines), min(BYTES_AT_ONCE, self._bytes))
            piece, self._pending = piece[:end], piece[end:]
            self._bytes -= len(piece)
            self._lines -= piece.count(b"\n")
        async with self._turn:
            await asyncio.sleep(0)
        return piece


def _end_of_lines(data: bytes, lines: int, size_bytes: int) -> int:
    """Return the number of bytes in the first lines, at most `size_bytes`."""
    end = 0
    for _ in range(lines):
        end = data.find(b"\n", end, size_bytes) + 1
        if not end:
            return size_bytes
    return end
