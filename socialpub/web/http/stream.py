"""A body that is taken piece by piece, and the answer to one that is refused while it is still on its way.

A connection that is closed while the caller is sending breaks, and the caller may never read why. So the refusal goes
out first, and then what is on its way is taken and thrown away, for a moment and up to a limit.
"""

import asyncio
import contextlib
from collections.abc import Callable

from socialpub.core import logging
from socialpub.core.errors import InvalidRequest, SocialpubError
from socialpub.web.http import problems
from socialpub.web.http.answer import CLOSE, Answer
from socialpub.web.http.request import ClientGone, Request

log = logging.get_logger("socialpub.requests")

STALL_SECONDS = 60.0
"""A sender from whom nothing came for so long is gone without having closed the connection."""

MAX_DISCARDED_BYTES = 8 * 1024 * 1024
MAX_DISCARDED_SECONDS = 2.0


class RequestStream:
    """The body of one request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def feed(self, sink: Callable[[bytes], None]) -> None:
        """Hand every piece to `sink`, on the event loop. Raises what `sink` raises, ClientGone, and InvalidRequest
        when nothing comes any more."""
        loop = asyncio.get_running_loop()
        request, more = self._request, True
        request.send_body_to_file()
        try:
            async with asyncio.timeout(STALL_SECONDS) as timeout:
                renewed_at = loop.time()
                while more:
                    piece, more = await request.receive()
                    sink(piece)
                    request.release(len(piece))
                    if loop.time() - renewed_at > 1:
                        renewed_at = loop.time()
                        timeout.reschedule(renewed_at + STALL_SECONDS)
        except TimeoutError:
            message = f"Nothing arrived for {STALL_SECONDS:.0f} seconds. Send the request again."
            raise InvalidRequest.at(message=message) from None

    async def refuse(self, error: SocialpubError, refusal: Callable[[SocialpubError], Answer] | None = None) -> None:
        """Answer with `error` at once when the body has not arrived yet; else raise it, as a failure of any request.
        `refusal` makes the answer of it; by default it is a problem."""
        request = self._request
        if request.is_whole:
            raise error
        if error.status >= 500:
            fields = {"path": request.logged_path, "request_id": request.id.decode()}
            log.warning(error.detail, exc_info=error.__cause__, **fields)
        await self.leave(problems.answer_problem(error, request) if refusal is None else refusal(error))

    async def leave(self, answer: Answer) -> None:
        """Answer at once. What still arrives of the body is discarded for a moment, and then the connection ends."""
        request = self._request
        headers = (
            (b"content-type", answer.content_type),
            (b"content-length", b"%d" % len(answer.body)),
            *(header for header in answer.headers if header != CLOSE),
            CLOSE,
        )
        with contextlib.suppress(ClientGone):  # a caller that has gone needs no answer
            await request.start(answer.status, headers)
            await request.send(answer.body, more=True)
            if not request.waits_for_continue:
                await self._throw_away()
            await request.send(b"", more=False)

    async def _throw_away(self) -> None:
        left, more = MAX_DISCARDED_BYTES, True
        try:
            async with asyncio.timeout(MAX_DISCARDED_SECONDS):
                while more and left > 0:
                    piece, more = await self._request.receive()
                    self._request.release(len(piece))
                    left -= len(piece)
        except (TimeoutError, ClientGone):
            return
