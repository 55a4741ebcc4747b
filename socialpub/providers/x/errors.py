"""What X means when it does not do what was asked.

X answers in five shapes, which are all read here; what each case leads to stands in `refusals.py`. What no table
knows is refused as it stands: nothing unknown ever touches the account's connection.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, Throttled
from socialpub.providers.outcomes import Refused
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x.refusals import DAILY_LIMIT_CODES, RULES, Rule, Then, Why

REQUEST_ID = "x-transaction-id"
SAID_LENGTH = 300


NO_MEDIA_SCOPE = (
    "X refused the upload. Most likely the connection lacks the scope media.write: connect the account again and grant "
    "it. Posts without media still work."
)
DAILY_PAUSE_SECONDS = 3 * 3600.0
"""X names no end for an account's posts per day, which it counts in half-hour slices: hours, it is advised."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """X answered and refused for good."""

    why: Why
    message: str
    status: int
    code: str
    rest_seconds: float = 0.0
    reauth: bool = False
    request_id: str | None = None

    def refused(self) -> Refused:
        return Refused(self.message, self.code, self.reauth, self.rest_seconds)


@dataclass(frozen=True, slots=True)
class Said:
    """An error body, read liberally."""

    words: str
    """The message for people: X's first sentence, `""` when there is none."""
    texts: tuple[str, ...]
    """Every sentence of it, lower case."""
    types: frozenset[str]
    codes: frozenset[int]

    @property
    def code(self) -> str | None:
        """X's own name for it, if it has one."""
        if self.codes:
            return str(min(self.codes))
        return min(self.types, default=None)


def listen(answer: HttpResponse) -> Said:
    """Read an error body of any of X's shapes; an empty one or a page says nothing."""
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = None
    parts = [part for part in _parts(body) if isinstance(part, dict)]
    texts = [*_texts(body)]
    types = {
        str(value).rstrip("/").rsplit("/", 1)[-1].lower()
        for part in parts
        for value in (part.get("type"), part.get("reason"), _one_word(part.get("title")))
        if isinstance(value, str) and value != "about:blank"
    }
    codes = {part["code"] for part in parts if type(part.get("code")) is int}
    words = _safe(texts[0]) if texts else ""
    return Said(words, tuple(text.lower() for text in texts), frozenset(types), frozenset(codes))


def judge(answer: HttpResponse, *, endpoint: str, now: datetime | None, media: bool = False) -> Verdict:
    """What a failed call means for its post; `endpoint` is X's unit of rate limits, `media` marks the upload calls.

    Raises `AuthExpired`, `Throttled`, `AppRefused`, and `NoAnswer` for everything that is no answer of X's own.
    """
    status, said = answer.status, listen(answer)
    request_id = answer.headers.get(REQUEST_ID)
    code = said.code or str(status)
    if not 400 <= status < 500 or status == 408:
        raise NoAnswer(f"X did not answer as expected (HTTP {status}).", code=code, request_id=request_id)
    if status == 401:
        raise AuthExpired(_sentence("X no longer accepts the access token.", said), code=code, request_id=request_id)
    rule = next((rule for rule in RULES if _fits(rule, status, said)), Rule("See what it says."))
    if media and status == 403 and said.words.lower() in ("", "forbidden") and said.code is None:
        return Verdict(Why.OTHER, NO_MEDIA_SCOPE, status, code, request_id=request_id)
    message = _sentence(f"X refused (HTTP {status}).", said) + f" {rule.advice}"
    match rule.then:
        case Then.HOLD_APP:
            raise AppRefused(message, code=code, request_id=request_id)
        case Then.WAIT:
            daily = bool(said.codes & DAILY_LIMIT_CODES)
            raise Throttled(
                message,
                retry_after_seconds=DAILY_PAUSE_SECONDS if daily else reset_in(answer.headers, now),
                endpoint=endpoint,
                code=code,
                request_id=request_id,
            )
        case Then.REFUSE:
            return Verdict(rule.why, message, status, code, rule.rest_seconds, rule.reauth, request_id)


def oauth_kind(answer: HttpResponse) -> str | None:
    """The `error` of a token endpoint's body, None when the answer is not one of X's own."""
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return body["error"] if isinstance(body, dict) and isinstance(body.get("error"), str) else None


def reset_in(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """Seconds until X lets the call through again; None when it named no time that can be believed.

    A 24-hour window counts only when it is used up; of several the last to open. Without a `now` of ours the time of
    the answer itself is used.
    """
    now = now or _date(headers)
    daily = [
        reset
        for who in ("user", "app")
        if _number(headers.get(f"x-{who}-limit-24hour-remaining")) == 0
        and (reset := _number(headers.get(f"x-{who}-limit-24hour-reset"))) is not None
    ]
    reset = max(daily) if daily else _number(headers.get("x-rate-limit-reset"))
    if now is not None and reset is not None and reset - now.timestamp() > -CLOCK_DOUBT_SECONDS:
        return max(1.0, float(math.ceil(reset - now.timestamp())))
    seconds = _number(headers.get("retry-after"))
    return None if seconds is None else max(1.0, float(seconds))


CLOCK_DOUBT_SECONDS = 60
"""A reset longer past than this speaks of a clock that is wrong, not of a window that is open."""


def _fits(rule: Rule, status: int, said: Said) -> bool:
    if rule.statuses and status not in rule.statuses:
        return False
    if not (rule.types or rule.codes or rule.wordings):
        return True
    worded = any(wording in text for wording in rule.wordings for text in said.texts)
    return bool(rule.types & said.types or rule.codes & said.codes or worded)


def _parts(body: Any) -> Iterator[Any]:
    yield body
    if isinstance(body, dict) and isinstance(body.get("errors"), list):
        yield from body["errors"]


def _texts(body: Any) -> Iterator[str]:
    """X's sentences, the most telling first."""
    first, *errors = _parts(body)
    for key in ("message", "detail"):
        for error in errors:
            yield from _text(error.get(key) if isinstance(error, dict) else None)
    for error in errors:
        yield from _text(error)
    if isinstance(first, dict):
        for key in ("detail", "title", "message", "error_description", "error"):
            yield from _text(first.get(key))


def _text(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value.strip()


def _one_word(title: Any) -> str | None:
    """Titles such as `CreditsDepleted` are names; those of several words only repeat the status."""
    return title if isinstance(title, str) and re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", title) else None


def _safe(text: str) -> str:
    """One line without anything that could be a token."""
    line = re.sub(r"[\w\-+/=%.]{48,}", "****", " ".join(text.split()))
    return line if len(line) <= SAID_LENGTH else line[: SAID_LENGTH - 1] + "…"


def _sentence(ours: str, said: Said) -> str:
    return f'{ours[:-1]}: "{said.words}".' if said.words else ours


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text.strip()) else None


def _date(headers: Mapping[str, str]) -> datetime | None:
    try:
        return datetime.strptime(headers.get("date", ""), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
