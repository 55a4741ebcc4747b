"""Problem responses (RFC 7807), even while the request body is still arriving.

Every problem has exactly the fields of the specification. `detail` is for the caller, the cause for the log. If the
server closes the connection while the caller sends, the caller may never read the problem. So the server sends the
problem first, then discards the rest of the body, up to a limit of time and size.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable

import orjson

from socialpub.core import logging
from socialpub.core.errors import InternalError, InvalidRequest, SocialpubError, Unavailable, cut_path
from socialpub.web.http.answer import CLOSE, Answer, Header
from socialpub.web.http.request import ClientGone, Request
from socialpub.web.pages import pages

PROBLEM_JSON = b"application/problem+json"

log = logging.get_logger("socialpub.requests")


def find_problem(error: Exception, request: Request) -> SocialpubError:
    """Return the error for the caller, and log its cause."""
    if isinstance(error, SocialpubError) and error.status < 500:
        return error
    fields = {"method": request.method, "path": request.logged_path, "request_id": request.id.decode()}
    if isinstance(error, SocialpubError):
        cause = error.__cause__
        log.warning(error.detail, exc_info=cause, **fields)
        return error
    if isinstance(error, sqlite3.OperationalError):
        log.error("the database cannot be read", exc_info=error, **fields)
        return Unavailable("The database cannot be read at the moment. Try again.")
    log.error("a request failed", exc_info=error, **fields)
    return InternalError("An unexpected error occurred. Search the log for the id of this request.")


def as_json(error: SocialpubError, base_url: str) -> dict[str, object]:
    """Return the problem document."""
    problem: dict[str, object] = {
        "type": f"{base_url}/problems/{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
    }
    if error.status == 400:
        problem["errors"] = [{"path": cut_path(item.path), "message": item.message} for item in error.errors]
    return problem


def render_problem(error: SocialpubError, base_url: str) -> Answer:
    headers: list[Header] = [(name.encode(), value.encode()) for name, value in error.headers]
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return Answer(error.status, orjson.dumps(as_json(error, base_url)), tuple(headers), PROBLEM_JSON)


def answer_problem(error: SocialpubError, request: Request) -> Answer:
    problem = render_problem(error, request.state.rt.settings.base_url)
    if is_for_page(request):
        page = pages.render("failure.html", error=error)
        return Answer(problem.status, page, (*problem.headers, *pages.HEADERS), pages.HTML)
    return problem


def is_for_page(request: Request) -> bool:
    """Return whether problems of this request are pages: for browsers, outside of the API."""
    return not request.path.startswith(("/api/", "/storage/")) and request.prefers_page()


# --- streamed bodies -------------------------------------------------------------------------------------------------

STALL_SECONDS = 60.0
"""The time without data after which the sender counts as disconnected."""

MAX_DISCARDED_BYTES = 8 * 1024 * 1024
MAX_DISCARDED_SECONDS = 2.0


async def receive_body(request: Request, sink: Callable[[bytes], None]) -> None:
    """Pass every piece to `sink`, on the event loop.

    Raises ClientGone, InvalidRequest for a stalled body, and the exceptions of `sink`.
    """
    loop, more = asyncio.get_running_loop(), True
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
        message = f"No data arrived for {STALL_SECONDS:.0f} seconds. Send the request again."
        raise InvalidRequest.at(message=message) from None


async def refuse_body(
    request: Request, error: SocialpubError, refusal: Callable[[SocialpubError], Answer] | None = None
) -> None:
    """Send `error` at once if the body has not arrived yet, otherwise raise it. `refusal` renders the response."""
    if request.is_whole:
        raise error
    if error.status >= 500:
        fields = {"path": request.logged_path, "request_id": request.id.decode()}
        log.warning(error.detail, exc_info=error.__cause__, **fields)
    await answer_and_close(request, answer_problem(error, request) if refusal is None else refusal(error))


async def answer_and_close(request: Request, answer: Answer) -> None:
    """Send the response at once, discard some of the body, then close the connection."""
    headers = (
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        *(header for header in answer.headers if header != CLOSE),
        CLOSE,
    )
    with contextlib.suppress(ClientGone):
        await request.start(answer.status, headers)
        await request.send(answer.body, more=True)
        if not request.waits_for_continue:
            await _discard_body(request)
        await request.send(b"", more=False)


async def _discard_body(request: Request) -> None:
    left, more = MAX_DISCARDED_BYTES, True
    with contextlib.suppress(TimeoutError, ClientGone):
        async with asyncio.timeout(MAX_DISCARDED_SECONDS):
            while more and left > 0:
                piece, more = await request.receive()
                request.release(len(piece))
                left -= len(piece)
