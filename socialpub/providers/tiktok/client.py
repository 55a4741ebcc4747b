"""One exchange with TikTok's posting endpoints on behalf of a job, judged by the code in its body.

HTTP 200 says nothing here, and what no table knows is refused as it stands, with TikTok's own words.
"""

from dataclasses import replace
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.errors import Rejected
from socialpub.providers.job import Job
from socialpub.providers.responses import json_object, object_at
from socialpub.providers.tiktok import limits, remedies
from socialpub.providers.tiktok.errors import TABLE, read_error
from socialpub.providers.tiktok.options import is_draft


class CallRefused(Rejected):
    """Refused by TikTok itself."""

    def __init__(self, rejection: Rejection) -> None:
        about = {"code": rejection.code, "request_id": rejection.request_id}
        super().__init__(rejection.message, status=rejection.status, reauth=rejection.reauth, **about)
        self.rejection = rejection


def call(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The `data` of a response; `path` is below `/v2/`, closing slash and query included. Raises `CallRefused`
    and the rest of `errors.py`."""
    response = job.call(
        "POST",
        f"{section.api_url}/v2/{path}",
        token=job.token,
        headers={"content-type": "application/json; charset=UTF-8"},
        json=body,
    )
    error = read_error(response)
    job.trace.request_id = error.request_id or job.trace.request_id
    job.trace.code = None if error.code == "ok" else error.code or str(response.status)
    if error.code == "ok" and response.ok:
        return object_at(json_object(response), "data")
    rejection = TABLE.classify(response)
    if rejection.reason is Reason.SCOPE_MISSING:
        rejection = _scope_missing(job, section, rejection)
    raise CallRefused(rejection)


def _scope_missing(job: Job, section: TikTokSection, rejection: Rejection) -> Rejection:
    """The other way of publishing may remain: then the connection is kept."""
    missing, other = limits.SCOPE_DIRECT, limits.SCOPE_DRAFT
    if is_draft(job.options):
        missing, other = other, missing
    scopes = job.account.scopes
    remedy = remedies.how_to_grant(missing, section.scopes)
    message = f"The connection lacks TikTok's permission {missing}: {remedy} and grant it."
    return replace(rejection, message=message, reauth=bool(scopes) and other not in scopes)
