"""One exchange with Pinterest on behalf of a job: the same for every step."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Outcome, Wait
from socialpub.providers.pinterest.errors import REQUEST_ID, TABLE, read_error
from socialpub.providers.responses import HttpResponse, json_object, text_at

PAGE_SIZE = 250
MOST_PAGES = 20
"""An account holds at most 2,000 boards; whoever answers with more pages than this goes in circles."""

BUSY_SECONDS, BUSY_MOST_SECONDS = 3.0, 900.0


class GetPage(Protocol):
    def __call__(self, url: str, params: dict[str, str]) -> HttpResponse: ...


def call(job: Job, method: str, url: str, **request: Any) -> HttpResponse:
    """Call Pinterest as the account, and note for the attempt what its support would ask for."""
    response = job.call(method, url, token=job.token, **request)
    job.trace.request_id = response.headers.get(REQUEST_ID)
    job.trace.code = None if response.ok else (read_error(response).code or str(response.status))
    return response


def id_of(found: dict[str, Any], name: str) -> str | None:
    """An id: digits, often more than fit into 64 bits, so it stays a text."""
    value = found.get(name)
    value = str(value) if type(value) is int else value
    return value if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else None


def pages(get: GetPage, url: str, most: int = MOST_PAGES) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    """The items of a list page by page, and whether this page is the last. At most `most` of them.

    Raises `errors.py`: what a refusal means, and `NoAnswer` when a page is no list.
    """
    params, passed = {"page_size": str(PAGE_SIZE)}, set[str]()
    for _ in range(most):
        response = get(url, params)
        if not response.ok:
            raise TABLE.error(response)
        found = json_object(response)
        items, bookmark = found.get("items"), text_at(found, "bookmark")
        if not isinstance(items, list):
            raise NoAnswer("Pinterest's list could not be read.", request_id=response.headers.get(REQUEST_ID))
        yield [item for item in items if isinstance(item, dict)], bookmark is None
        if bookmark is None:
            return
        if bookmark in passed:
            raise NoAnswer(
                "Pinterest returned the same page of its list twice.", request_id=response.headers.get(REQUEST_ID)
            )
        passed.add(bookmark)
        params = {**params, "bookmark": bookmark}


def refusal(job: Job, rejection: Rejection) -> Outcome:
    """The outcome of a refusal that means the same in every step."""
    if rejection.reason is Reason.BUSY:
        count = job.memo.get("busy", 0)
        pause = min(BUSY_SECONDS * 2**count, BUSY_MOST_SECONDS)
        return Wait(pause, "Pinterest is still writing to this board", {**job.memo, "busy": count + 1})
    return rejection.refused()
