"""Every failure as a problem (RFC 7807): exactly the fields of the specification's section 7, wherever it happens.

A problem never shows a stack trace, a path of this machine or a secret: `detail` is written for the caller, the cause
goes to the log.
"""

import orjson

from socialpub.core.errors import SocialpubError, shown_path
from socialpub.web.answer import Answer, Header
from socialpub.web.pages import pages
from socialpub.web.request import Request

PROBLEM_JSON = b"application/problem+json"


def render(error: SocialpubError, base_url: str) -> Answer:
    """This failure as an answer."""
    problem: dict[str, object] = {
        "type": f"{base_url}/problems/{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
    }
    if error.status == 400:
        problem["errors"] = [{"path": shown_path(item.path), "message": item.message} for item in error.errors]
    headers: list[Header] = [(name.encode(), value.encode()) for name, value in error.headers]
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return Answer(error.status, orjson.dumps(problem), tuple(headers), PROBLEM_JSON)


def answer(error: SocialpubError, request: Request) -> Answer:
    """The failure of this request: a problem, or a page for a browser that is outside of the API."""
    problem = render(error, request.state.rt.settings.base_url)
    if is_for_page(request):
        return Answer(problem.status, pages.failure(error), (*problem.headers, *pages.HEADERS), pages.HTML)
    return problem


def is_for_page(request: Request) -> bool:
    """Return whether a failure of this request is shown as a page: to a browser, outside of the API."""
    return not request.path.startswith(("/api/", "/storage/")) and request.prefers_page()
