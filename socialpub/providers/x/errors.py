"""What X means when it does not do what was asked.

X answers in five shapes and tells many cases apart by their wording alone, so the known wordings stand in one table
beside types and codes. What is in no table is refused as it stands: only a 401 ever touches the account's connection.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from socialpub.providers.base import Refused
from socialpub.providers.errors import AppRefused, AuthExpired, RateLimited, Unavailable
from socialpub.providers.http import Answer

HOUR = 3600.0
REQUEST_ID = "x-transaction-id"
SAID_LENGTH = 300


class Why(StrEnum):
    """The refusals that somebody reacts to in a way of their own."""

    MEDIA_INVALID = "media-invalid"
    DUPLICATE = "duplicate"
    TOO_LARGE = "too-large"
    GONE = "gone"
    OTHER = "other"


class Then(StrEnum):
    REFUSE = "refuse"
    HOLD_APP = "hold-app"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of X's reactions. It fits when the status is one of `statuses` (empty: any) and, where at least one of
    the other marks is given, one of them is found."""

    advice: str
    statuses: frozenset[int] = frozenset()
    types: frozenset[str] = frozenset()
    """Last path segments of problem types, and `reason`s."""
    codes: frozenset[int] = frozenset()
    wordings: tuple[str, ...] = ()
    """Parts of X's own sentences, lower case."""
    then: Then = Then.REFUSE
    why: Why = Why.OTHER
    rest_seconds: float = 0.0
    reauth: bool = False


def _any(*values: Any) -> frozenset[Any]:
    return frozenset(values)


RULES: tuple[Rule, ...] = (
    # The app, whatever the status.
    Rule("The app has no credits left or is at its spending limit: top it up at console.x.com.", _any(402),
         then=Then.HOLD_APP),
    Rule("The app has no credits left or is at its spending limit: top it up at console.x.com.",
         types=_any("credits", "credits-depleted", "creditsdepleted"), then=Then.HOLD_APP),
    Rule("The app's plan is used up for this period.", types=_any("usage-capped", "usagecapexceeded"),
         then=Then.HOLD_APP),
    Rule("The app may not use this endpoint: put it into a project with a fitting plan at console.x.com.",
         types=_any("client-forbidden", "client-not-enrolled", "official-client-forbidden"), codes=_any(453),
         then=Then.HOLD_APP),
    Rule("X suspended the app: see console.x.com.", types=_any("app-suspended"), then=Then.HOLD_APP),
    # The account.
    Rule("The account is suspended or locked: log in on x.com and follow what it says there.", _any(400, 403),
         types=_any("user-suspended"), codes=_any(64, 326), rest_seconds=24 * HOUR),
    Rule("X takes no posts from this account for now; it was left alone for a while. Try again later.", _any(403),
         wordings=("not permitted to access this feature",), rest_seconds=HOUR),
    Rule("X takes this for automated spam; the account was left alone for some hours. Change the text and try later.",
         _any(400, 403), codes=_any(226), wordings=("might be automated",), rest_seconds=6 * HOUR),
    Rule("The account reached its posts per day.", _any(400, 403, 429), codes=_any(185, 344), then=Then.WAIT),
    Rule("The window of this endpoint is full.", _any(429), then=Then.WAIT),
    Rule("The window of this endpoint is full.", codes=_any(88), types=_any("rate-limit-exceeded"), then=Then.WAIT),
    Rule("Connect the account again: X wants a token of the account, not of the app.", _any(403),
         types=_any("unsupported-authentication"), wordings=("application-only is forbidden",), reauth=True),
    # The post.
    Rule("Upload the media again, within X's limits.", _any(400, 403), wordings=("media ids are invalid",),
         why=Why.MEDIA_INVALID),
    Rule("Shorten the text.", _any(400, 403), codes=_any(186), wordings=("text is too long",)),
    Rule("Give only one of media and quotePostId.", _any(400), wordings=("you can only provide one of",)),
    Rule("This is a fault of socialpub: please report it.", _any(400),
         wordings=("request body must be a json object", "requests with bodies must have content-type",
                   "request body is not valid json")),
    Rule("X has this text already: change it.", _any(400, 403), codes=_any(187), wordings=("duplicate content",),
         why=Why.DUPLICATE),
    Rule("Keep at most one cashtag ($TICKER) in the text.", _any(400, 403), wordings=("one cashtag",)),
    Rule("Shorten the video, or post it from an account with X Premium.", _any(400, 403),
         wordings=("post a video longer than",)),
    Rule("X lets an app reply only where the account was mentioned or quoted, or to its own posts: "
         "drop inReplyToPostId or quotePostId, or choose another post.", _any(400, 403), codes=_any(385),
         wordings=("you can only reply to or quote posts", "reply to this conversation is not allowed",
                   "deleted or not visible")),
    Rule("X blocks a link of the text: remove it.", _any(400, 403), wordings=("contains an invalid url",)),
    Rule("Check the text's length, the media, the options, and that the app may write (console.x.com).", _any(403),
         wordings=("not permitted to perform this action",)),
    Rule("What it refers to is gone, or the app has no access to it.", _any(404), why=Why.GONE),
    Rule("Not found any more.", _any(400), wordings=("badrequest: not found",), why=Why.GONE),
    Rule("Send less at once.", _any(413, 431), why=Why.TOO_LARGE),
    Rule("Change what it names and post again.", _any(400)),
    Rule("Check the options, the account's state on x.com and the app's permissions at console.x.com.", _any(403)),
)  # fmt: skip

NO_MEDIA_SCOPE = (
    "X refused the upload. Most likely the connection lacks the scope media.write: connect the account again and grant "
    "it. Posts without media still work."
)
DAILY_PAUSE_SECONDS = 3 * HOUR
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


def listen(answer: Answer) -> Said:
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
    return Said(_safe(texts[0]) if texts else "", tuple(text.lower() for text in texts), frozenset(types), frozenset(codes))




def judge(answer: Answer, *, endpoint: str, now: datetime, media: bool = False) -> Verdict:
    """What a failed call means for its post; `endpoint` is X's unit of rate limits, `media` marks the upload calls.

    Raises `AuthExpired`, `RateLimited`, `AppRefused`, and `Unavailable` for everything that is no answer of X's own.
    """
    status, said = answer.status, listen(answer)
    request_id = answer.headers.get(REQUEST_ID)
    code = said.code or str(status)
    if not 400 <= status < 500 or status == 408:
        raise Unavailable(f"X did not answer as expected (HTTP {status}).", code=code, request_id=request_id)
    if status == 401:
        raise AuthExpired(_sentence("X no longer accepts the access token.", said), code=code, request_id=request_id)
    rule = next((rule for rule in RULES if _fits(rule, status, said)), Rule("See what it says."))
    if media and status == 403 and set(said.texts) <= {"forbidden"} and not said.codes:
        return Verdict(Why.OTHER, NO_MEDIA_SCOPE, status, code, request_id=request_id)
    message = _sentence(f"X refused (HTTP {status}).", said) + f" {rule.advice}"
    match rule.then:
        case Then.HOLD_APP:
            raise AppRefused(message, code=code, request_id=request_id)
        case Then.WAIT:
            daily = bool(said.codes & {185, 344})
            raise RateLimited(
                message,
                retry_after_seconds=DAILY_PAUSE_SECONDS if daily else reset_in(answer.headers, now),
                endpoint=endpoint,
                code=code,
                request_id=request_id,
            )
        case Then.REFUSE:
            return Verdict(rule.why, message, status, code, rule.rest_seconds, rule.reauth, request_id)


def reset_in(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until X lets the call through again; None when it named no time that can be believed.

    A 24-hour window counts only when it is used up; of several the last to open.
    """
    daily = [
        reset
        for who in ("user", "app")
        if _number(headers.get(f"x-{who}-limit-24hour-remaining")) == 0
        and (reset := _number(headers.get(f"x-{who}-limit-24hour-reset"))) is not None
    ]
    reset = max(daily) if daily else _number(headers.get("x-rate-limit-reset"))
    if reset is not None and reset - now.timestamp() > -CLOCK_DOUBT_SECONDS:
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
    return f'{ours[:-1]}: "{said.words}"' if said.words else ours


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text.strip()) else None
