"""One exchange with TikTok's posting endpoints on behalf of a job, judged by the code in its body.

HTTP 200 says nothing here, and what no table knows is refused as it stands, with TikTok's own words.
"""

from typing import Any, NoReturn

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers import responses
from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, Rejected, Throttled
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Refused
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.options import is_draft
from socialpub.providers.tiktok.refusals import CODES, DAY_SECONDS, SCOPE_CODES, Then

MIN_PAUSE_SECONDS = 60.0
"""TikTok's windows are a minute long and it names no time."""


class Denied(Rejected):
    """Refused by TikTok itself. `rest_seconds`: how long the account is left alone."""

    def __init__(self, message: str, rest_seconds: float = 0.0, **about: Any) -> None:
        super().__init__(message, **about)
        self.rest_seconds = rest_seconds

    def refused(self) -> Refused:
        return Refused(self.message, self.code, self.reauth, self.rest_seconds)


def ask(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The `data` of an answer; `path` is below `/v2/`, closing slash and query included.

    Raises `Denied`, `AppRefused`, `Throttled`, `AuthExpired`, and `NoAnswer` for what is no answer of TikTok's.
    """
    answer = job.call(
        "POST",
        f"{section.api_url}/v2/{path}",
        token=job.token,
        headers={"content-type": "application/json; charset=UTF-8"},
        json=body,
    )
    found = responses.json_object(answer)
    error = responses.object_at(found, "error")
    code = responses.text_at(error, "code")
    log_id = responses.text_at(error, "log_id") or responses.text_at(error, "logid")
    job.trace.request_id = log_id or job.trace.request_id
    job.trace.code = None if code == "ok" else code or str(answer.status)
    if code != "ok" or not 200 <= answer.status < 300:
        _refuse(job, answer, code, responses.shortened(responses.text_at(error, "message")), log_id)
    return responses.object_at(found, "data")


def _refuse(job: Job, answer: HttpResponse, code: str | None, said: str, log_id: str | None) -> NoReturn:
    status = answer.status
    about: dict[str, Any] = {"code": code or str(status), "request_id": log_id}
    if code == "rate_limit_exceeded" or (code is None and status == 429):
        named = responses.seconds_in_header(answer, "retry-after")
        pause = None if named is None else max(named, MIN_PAUSE_SECONDS)
        raise Throttled("TikTok's rate limit is reached.", retry_after_seconds=pause, **about)
    if code == "access_token_invalid" or (code is None and status == 401):
        raise AuthExpired("TikTok does not accept the access token.", **about)
    if code in SCOPE_CODES:
        raise _scope_missing(job, status, about)
    if _is_no_answer(status, code):
        raise NoAnswer(f"TikTok gave no usable answer (HTTP {status}).", **about)
    rule = CODES.get(code or "")
    quoted = f'"{said}"' if said else f"HTTP {status}"
    trace = f" (log_id {log_id})" if log_id else ""
    if rule is None:
        raise Denied(f"TikTok refused: {quoted}, {code or 'without a code'}{trace}.", status=status, **about)
    match rule.then:
        case Then.WAIT_A_DAY:
            raise Throttled(rule.advice, retry_after_seconds=DAY_SECONDS, **about)
        case Then.HOLD_APP:
            raise AppRefused(rule.advice, **about)
        case _:
            heard = f"TikTok refused: {quoted}{trace}. " if code in ("invalid_param", "invalid_params") else ""
            raise Denied(heard + rule.advice, rule.rest_seconds, status=status, **about)


def _is_no_answer(status: int, code: str | None) -> bool:
    """TikTok's own faults, and what comes from something in between: it may have happened all the same."""
    if code in ("ok", "internal_error"):
        return True
    if code is None:
        return not 400 <= status < 500 or status == 408
    return status >= 500 and code not in CODES


def _scope_missing(job: Job, status: int, about: dict[str, Any]) -> Denied:
    """The other way of publishing may remain: then the connection is kept."""
    draft = is_draft(job.options)
    missing, other = limits.SCOPE_DIRECT, limits.SCOPE_DRAFT
    if draft:
        missing, other = other, missing
    scopes = job.account.scopes
    return Denied(
        f"The connection lacks TikTok's permission {missing}: connect the account again and grant it.",
        status=status,
        reauth=bool(scopes) and other not in scopes,
        **about,
    )
