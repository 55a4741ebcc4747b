"""One exchange with X on behalf of a job: what all its steps say and hear alike."""

import re
from typing import Any

from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x.errors import REQUEST_ID, listen


def ask(job: Job, method: str, url: str, **request: Any) -> HttpResponse:
    """Call X as the account, and note for the attempt what its support would ask for."""
    answer = job.call(method, url, token=job.token, **request)
    job.trace.request_id = answer.headers.get(REQUEST_ID)
    job.trace.code = None if succeeded(answer) else (listen(answer).code or str(answer.status))
    return answer


def succeeded(answer: HttpResponse) -> bool:
    return 200 <= answer.status < 300


def data_of(answer: HttpResponse) -> dict[str, Any]:
    """The `data` of an answer, empty when it has none (an append may answer without a body)."""
    body = answer.json() if answer.body.strip() else {}
    data = body.get("data") if isinstance(body, dict) else None
    return data if isinstance(data, dict) else {}


def media_id_of(answer: HttpResponse) -> str:
    """`data.id`, which posts refer to (`media_key` they do not take). Raises `NoAnswer` when there is none."""
    return _id_of(answer, "X took the upload but gave it no id.")


def post_id_of(answer: HttpResponse) -> str:
    """The new post's id. Raises `NoAnswer` when there is none: the post may be up all the same."""
    return _id_of(answer, "X took the post but gave it no id.")


def _id_of(answer: HttpResponse, otherwise: str) -> str:
    found = data_of(answer).get("id")
    if isinstance(found, str) and re.fullmatch(r"[0-9]{1,19}", found):
        return found
    raise NoAnswer(otherwise, request_id=answer.headers.get(REQUEST_ID))
