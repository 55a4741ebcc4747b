"""A stored file as the body of an answer, piece by piece: whatever its size, memory stays small."""

import asyncio

from socialpub.media.files import StoredFile
from socialpub.web.request import Request

PIECE_BYTES = 64 * 1024
"""Sent at once: other requests get their turn, and a reader who takes nothing holds no more than this. Larger pieces
were measured to be no quicker."""


async def send(request: Request, file: StoredFile, start: int, end: int) -> None:
    """The bytes from `start` up to `end`, which is not among them; the answer has begun already. Raises ClientGone."""
    at = start
    while at < end:
        length = min(PIECE_BYTES, end - at)
        piece = file.read_cached(at, length)
        if piece is None:
            piece = await asyncio.to_thread(file.read, at, length)
        if not piece:
            raise OSError("a stored file is shorter than it was")
        at += len(piece)
        await request.send(piece, more=at < end)
        # A quick reader never makes us wait, and then no other request would get its turn.
        await asyncio.sleep(0)
