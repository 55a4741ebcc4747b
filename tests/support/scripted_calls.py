"""A written conversation with one network: each call gets the next answer, and its request is checked."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from socialpub.providers.auth import Account
from socialpub.providers.base import Again, Content, ImageLimits, Job, MediaFile, Memo, Outcome
from socialpub.providers.responses import HttpResponse

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def answer(status: int, body: Any = None, **headers: str) -> HttpResponse:
    """`retry_after="1"` becomes the header `retry-after`."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return HttpResponse(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def as_it_is(media: MediaFile, limits: ImageLimits) -> MediaFile:
    return media


@dataclass
class SentCall:
    method: str
    path: str
    """Below the network's address; the whole address when it lies elsewhere."""
    request: dict[str, Any]

    @property
    def json(self) -> Any:
        return self.request.get("json")

    @property
    def params(self) -> dict[str, str]:
        return self.request.get("params") or {}


class ScriptedCalls:
    """Answers in order; an exception is raised instead of answered. Each network checks what it is sent."""

    def __init__(self, *answers: HttpResponse | Exception) -> None:
        self._answers = list(answers)
        self.calls: list[Any] = []

    def call(self, method: str, url: str, **request: Any) -> HttpResponse:
        call = self.read(method, url, request)
        self.calls.append(call)
        assert self._answers, f"unexpected: {method} {call.path}"
        following = self._answers.pop(0)
        if isinstance(following, Exception):
            raise following
        return following

    __call__ = call

    def read(self, method: str, url: str, request: dict[str, Any]) -> SentCall:
        """The call as the network sees it. Fails when it has not the form that the network describes."""
        raise NotImplementedError

    @property
    def asked(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.calls]

    @property
    def over(self) -> bool:
        return not self._answers


def scripted_job(
    script: ScriptedCalls,
    content: Content,
    account: Account,
    token: str,
    options: dict[str, Any],
    *,
    memo: Memo | None = None,
    seconds: float = 0.0,
    back: dict[str, int] | None = None,
    **more: Any,
) -> Job:
    """A run of one step, `seconds` after NOW; `more` are other fields of the job."""
    now = NOW + timedelta(seconds=seconds)
    return Job(
        content=content,
        options=options,
        account=account,
        memo=memo or {},
        token=token,
        call=script.call,
        times_back=back or {},
        **{"wall_now": now, "even_now": now, "fit": as_it_is, "slice_over": lambda: False, **more},
    )


def counted(outcome: Outcome, back: dict[str, int] | None) -> Outcome:
    """The outcome as the engine settles it; `back` holds how often each cause led back, and is counted on."""
    if not isinstance(outcome, Again):
        return outcome
    times = 0 if back is None else back.get(outcome.cause, 0)
    result = outcome.after(times)
    if isinstance(result, Again) and back is not None:
        back[outcome.cause] = times + 1
    return result
