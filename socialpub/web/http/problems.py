"""Problem responses (RFC 7807).

Every problem has exactly the fields of the specification. `detail` is for the caller, the cause for the log.
"""

import sqlite3

from starlette.requests import Request
from starlette.responses import Response

from socialpub.core import logging
from socialpub.core.errors import InternalError, SocialpubError, Unavailable, cut, cut_path
from socialpub.web.http.responses import JSONResponse, prefers_page
from socialpub.web.pages import pages

PROBLEM_JSON = "application/problem+json"

log = logging.get_logger(__name__)


def find_problem(error: Exception, request: Request) -> SocialpubError:
    """Return the error for the caller, and log its cause."""
    if isinstance(error, SocialpubError) and error.status < 500:
        return error
    fields = {"method": request.method, "path": cut(request.scope["path"]), "request_id": request.state.id}
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


def render_problem(error: SocialpubError, base_url: str) -> JSONResponse:
    return JSONResponse(as_json(error, base_url), error.status, _headers(error), PROBLEM_JSON)


def _headers(error: SocialpubError) -> dict[str, str]:
    more = {} if error.retry_after_seconds is None else {"retry-after": f"{error.retry_after_seconds}"}
    return {**dict(error.headers), **more}


def respond(error: SocialpubError, request: Request) -> Response:
    if is_for_page(request):
        return pages.respond("failure.html", error.status, {**_headers(error), **pages.HEADERS}, error=error)
    return render_problem(error, request.app.state.rt.settings.base_url)


def is_for_page(request: Request) -> bool:
    """Return whether problems of this request are pages: for browsers, outside of the API."""
    return not request.scope["path"].startswith(("/api/", "/storage/")) and prefers_page(request)
