"""One exchange with Pinterest on behalf of a job: what all its steps say and hear alike."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

from socialpub.providers import responses
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Outcome, Refused, Wait
from socialpub.providers.pinterest.errors import REQUEST_ID, Verdict, Why, failure, listen
from socialpub.providers.responses import HttpResponse

PAGE_SIZE = 250
MOST_PAGES = 20
"""An account holds at most 2,000 boards; whoever answers with more pages than this goes in circles."""

BUSY_SECONDS, BUSY_MOST_SECONDS = 3.0, 900.0


class Get(Protocol):
    def __call__(self, url: str, params: dict[str, str]) -> HttpResponse: ...


def ask(job: Job, method: str, url: str, **request: Any) -> HttpResponse:
    """Call Pinterest as the account, and note for the attempt what its support would ask for."""
    answer = job.call(method, url, token=job.token, **request)
    job.trace.request_id = answer.headers.get(REQUEST_ID)
    job.trace.code = None if succeeded(answer) else listen(answer).code(answer.status)
    return answer


def succeeded(answer: HttpResponse) -> bool:
    return 200 <= answer.status < 300


def id_of(found: dict[str, Any], name: str) -> str | None:
    """An id: digits, often more than fit into 64 bits, so it stays a text."""
    value = found.get(name)
    value = str(value) if type(value) is int else value
    return value if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else None


def pages(get: Get, url: str, most: int = MOST_PAGES) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    """The items of a list page by page, and whether this page is the last. At most `most` of them.

    Raises what `failure` says; `NoAnswer` when a page is no list.
    """
    params, told = {"page_size": str(PAGE_SIZE)}, set[str]()
    for _ in range(most):
        answer = get(url, params)
        if not succeeded(answer):
            raise failure(answer, endpoint="")
        found = responses.json_object(answer)
        items, bookmark = found.get("items"), responses.text_at(found, "bookmark")
        if not isinstance(items, list):
            raise NoAnswer("Pinterest's list could not be read.", request_id=answer.headers.get(REQUEST_ID))
        yield [item for item in items if isinstance(item, dict)], bookmark is None
        if bookmark is None:
            return
        if bookmark in told:
            raise NoAnswer("Pinterest's list goes in circles.", request_id=answer.headers.get(REQUEST_ID))
        told.add(bookmark)
        params = {**params, "bookmark": bookmark}


def refusal(job: Job, no: Verdict) -> Outcome:
    """The outcome of a refusal that means the same in every step."""
    if no.why is Why.BUSY:
        count = job.memo.get("busy", 0)
        pause = min(BUSY_SECONDS * 2**count, BUSY_MOST_SECONDS)
        return Wait(pause, "Pinterest is still writing to this board", {**job.memo, "busy": count + 1})
    return no.refused()


def again(
    job: Job, step: str, because: str, *, limit: int, otherwise: str, seconds: float = 0.0, **memo: Any
) -> Outcome:
    """Back to an earlier step, at most `limit` times for this reason; then refused with `otherwise`."""
    counts = job.memo.get("again", {})
    count = counts.get(because, 0)
    if count >= limit:
        return Refused(otherwise)
    kept = {**job.memo, **memo, "again": {**counts, because: count + 1}}
    return Again(step, kept, because, limit, seconds)


def times(job: Job, because: str) -> int:
    """How often it went back for this reason."""
    return int(job.memo.get("again", {}).get(because, 0))
