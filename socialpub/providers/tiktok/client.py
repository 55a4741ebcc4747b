"""One exchange with TikTok's posting endpoints on behalf of a job or of an owner, judged by the code in its body.

HTTP 200 says nothing here, and what no table knows is refused as it stands, with TikTok's own words.
"""

from collections.abc import Set
from dataclasses import replace
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.errors import Rejected
from socialpub.providers.http import Http
from socialpub.providers.job import Job
from socialpub.providers.responses import HttpResponse, json_object, object_at
from socialpub.providers.tiktok import limits, remedies
from socialpub.providers.tiktok.errors import TABLE, read_error
from socialpub.providers.tiktok.options import is_draft

JSON = {"content-type": "application/json; charset=UTF-8"}
OWNER_SECONDS = 15.0
"""Nobody looks at an empty page for longer."""


class CallRefused(Rejected):
    """Refused by TikTok itself."""

    def __init__(self, rejection: Rejection) -> None:
        about = {"code": rejection.code, "request_id": rejection.request_id}
        super().__init__(
            rejection.message, status=rejection.status, reauth=rejection.reauth, content=rejection.content, **about
        )
        self.rejection = rejection


def call(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The `data` of a response; `path` is below `/v2/`, closing slash and query included. Raises `CallRefused`
    and the rest of `errors.py`."""
    response = job.call("POST", f"{section.api_url}/v2/{path}", token=job.token, headers=JSON, json=body)
    error = read_error(response)
    job.trace.request_id = error.request_id or job.trace.request_id
    job.trace.code = None if error.code == "ok" else error.code or str(response.status)
    return _data(response, section, job.account.scopes, draft=is_draft(job.options))


def ask(http: Http, section: TikTokSection, path: str, token: str, scopes: Set[str]) -> dict[str, Any]:
    """The same for an owner who wants to post directly and has no post yet."""
    url = f"{section.api_url}/v2/{path}"
    response = http.call("POST", url, token=token, headers=JSON, json={}, deadline_seconds=OWNER_SECONDS)
    return _data(response, section, scopes, draft=False)


def _data(response: HttpResponse, section: TikTokSection, scopes: Set[str], *, draft: bool) -> dict[str, Any]:
    if read_error(response).code == "ok" and response.ok:
        return object_at(json_object(response), "data")
    rejection = TABLE.classify(response)
    if rejection.reason is Reason.SCOPE_MISSING:
        rejection = _scope_missing(section, scopes, rejection, draft=draft)
    raise CallRefused(rejection)


def _scope_missing(section: TikTokSection, scopes: Set[str], rejection: Rejection, *, draft: bool) -> Rejection:
    """The other way of publishing may remain: then the connection is kept."""
    missing, other = limits.SCOPE_DIRECT, limits.SCOPE_DRAFT
    if draft:
        missing, other = other, missing
    remedy = remedies.how_to_grant(missing, section.scopes)
    message = f"The connection lacks TikTok's permission {missing}: {remedy} and grant it."
    return replace(rejection, message=message, reauth=bool(scopes) and other not in scopes)
