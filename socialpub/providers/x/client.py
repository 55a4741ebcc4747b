"""One exchange with X on behalf of a job: the same for every step."""

import re
from typing import Any

from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.responses import HttpResponse, as_object, object_at
from socialpub.providers.x.errors import REQUEST_ID, read_error


def call(job: Job, method: str, url: str, **request: Any) -> HttpResponse:
    """Call X as the account, and note for the attempt what its support would ask for."""
    response = job.call(method, url, token=job.token, **request)
    job.trace.request_id = response.headers.get(REQUEST_ID)
    job.trace.code = None if response.ok else (read_error(response).code or str(response.status))
    return response


def data_of(response: HttpResponse) -> dict[str, Any]:
    """The `data` of a success, empty when it has none (an append may answer without a body). Raises `NoAnswer` when
    the body is no JSON."""
    return object_at(as_object(response.json()), "data") if response.body.strip() else {}


def answered_data_of(response: HttpResponse) -> dict[str, Any]:
    """The `data` of a success that must have one. Raises `NoAnswer` when there is none: it was not X that answered."""
    data = data_of(response)
    if not data:
        raise NoAnswer("X's answer holds nothing.", request_id=response.headers.get(REQUEST_ID))
    return data


def media_id_of(response: HttpResponse) -> str:
    """`data.id`, which posts refer to (`media_key` they do not take). Raises `NoAnswer` when there is none."""
    return _id_of(response, "X took the upload but gave it no id.")


def post_id_of(response: HttpResponse) -> str:
    """The new post's id. Raises `NoAnswer` when there is none: the post may be up all the same."""
    return _id_of(response, "X took the post but gave it no id.")


def _id_of(response: HttpResponse, otherwise: str) -> str:
    found = data_of(response).get("id")
    if isinstance(found, str) and re.fullmatch(r"[0-9]{1,19}", found):
        return found
    raise NoAnswer(otherwise, request_id=response.headers.get(REQUEST_ID))
