"""What Pinterest means when it does not do what was asked.

Status and code together decide, wording only refines: the same code means different things under different statuses.
A proxy may answer in Pinterest's place, with a page or with nothing; then the status alone speaks.
"""

import math
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from socialpub.providers import responses
from socialpub.providers.errors import AppRefused, AuthExpired, NoAnswer, ProviderError, Rejected, Throttled
from socialpub.providers.outcomes import Refused
from socialpub.providers.responses import HttpResponse

REQUEST_ID = "x-pinterest-rid"
SANDBOX_API = "https://api-sandbox.pinterest.com/v5"

SPAM_REST_SECONDS = 6 * 3600.0
"""Pinterest names no end for it: hours, it is advised."""
DAILY_QUOTA_SECONDS = 3600.0
"""A longer wait than this speaks of the day's quota of a Trial app; the other windows last a minute."""


class Why(StrEnum):
    """The refusals that somebody reacts to in a way of their own."""

    BUSY = "busy"
    """Somebody else writes to the same board."""
    DENIED = "denied"
    """This app may not read what belongs to an account that is no business account."""
    GONE = "gone"
    TOO_LARGE = "too-large"
    OTHER = "other"


class Then(StrEnum):
    REFUSE = "refuse"
    RECONNECT = "reconnect"
    REFRESH = "refresh"
    HOLD_APP = "hold-app"
    WAIT = "wait"
    NO_ANSWER = "no-answer"
    """It may have happened."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row. It fits when status and code are among those given (None: any) and, where wordings are given, one of
    them is found in the message."""

    status: int | None
    code: int | None
    advice: str = ""
    then: Then = Then.REFUSE
    why: Why = Why.OTHER
    wordings: tuple[str, ...] = ()
    rest_seconds: float = 0.0


FROM_LIST = "`socialpub admin list-boards` shows the boards of this account and their ids."
RECONNECT = "Connect the account again and grant every permission that is asked for."
NOT_APPROVED = (
    "Pinterest has not approved the app for this yet. Look at it on developers.pinterest.com; connecting the account "
    "again does not help."
)
TRIAL = (
    f'A Trial app creates pins only in Pinterest\'s sandbox: set api_url = "{SANDBOX_API}" in [providers.pinterest] '
    "and connect the account again there, or ask for Standard access on developers.pinterest.com."
)
DENIED = (
    "This app may not read boards and pins of an account that is no business account: make it a business account on "
    "Pinterest (it costs nothing), or ask Pinterest for that access."
)

RULES: tuple[Rule, ...] = (
    Rule(429, None, "Pinterest takes this for spam; the account is left alone for some hours. Vary texts, links and "
         "pictures, and post less at once.", wordings=("spam",), rest_seconds=SPAM_REST_SECONDS),
    Rule(429, None, then=Then.WAIT),
    Rule(503, 4197, then=Then.WAIT),
    # The token, and the app.
    Rule(401, 3, RECONNECT, Then.RECONNECT, wordings=("scope",)),
    Rule(401, 3, NOT_APPROVED, Then.HOLD_APP),
    Rule(401, 7, "The account may not use this board or pin."),
    Rule(401, None, then=Then.REFRESH),
    Rule(403, None, DENIED, why=Why.DENIED, wordings=("pinner_data_access_denied",)),
    Rule(403, 3, RECONNECT, Then.RECONNECT),
    Rule(403, 29, TRIAL, Then.HOLD_APP, wordings=("trial", "sandbox")),
    Rule(403, 29, "It belongs to somebody else, or is secret and this connection may not see it: choose a board of "
         f"the account's own. {FROM_LIST}"),
    # The post.
    Rule(403, 233, "Give a larger picture, best 1000×1500 pixels."),
    Rule(403, 235, "Pinterest cannot read the picture: save it anew as JPEG or PNG."),
    Rule(403, 2625, "Pinterest has blocked the account: log in on pinterest.com and follow what it says there."),
    Rule(403, 2626, "Pinterest is reviewing the account: wait for the end of it, then create the post again."),
    Rule(403, None, "Look at the account's state on pinterest.com, at the board, and at the app's permissions on "
         "developers.pinterest.com."),
    Rule(404, 40, "There is no such board: it was deleted, belongs to the other environment (sandbox or production), "
         f"or boardId is wrong. {FROM_LIST}", why=Why.GONE),
    Rule(404, 2031, "The board has no such section: leave out boardSectionId or correct it.", why=Why.GONE),
    Rule(404, None, "It is gone.", why=Why.GONE),
    Rule(400, 2787, then=Then.NO_ANSWER),
    Rule(400, None, f"A board is named by its id, not by its name. {FROM_LIST}", wordings=(r"^\d+$", r"^\\d+$")),
    Rule(400, None, "Give another link: a whole, public http or https address.", wordings=("url is invalid",)),
    Rule(400, None, "Check the texts, the link, the options and the media."),
    Rule(405, None, "This is a fault of socialpub: please report it."),
    Rule(408, None, then=Then.NO_ANSWER),
    Rule(409, None, "Somebody else changes the same board just now: try again later.", why=Why.BUSY),
    Rule(413, None, "Give smaller media.", why=Why.TOO_LARGE),
)  # fmt: skip
"""The first row that fits decides. A 4xx that no row knows is refused as it stands."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Pinterest answered and refused for good."""

    message: str
    status: int
    code: str
    why: Why = Why.OTHER
    rest_seconds: float = 0.0
    reauth: bool = False
    request_id: str | None = None

    def refused(self) -> Refused:
        return Refused(self.message, self.code, self.reauth, self.rest_seconds)

    def rejected(self) -> Rejected:
        return Rejected(
            self.message, status=self.status, reauth=self.reauth, code=self.code, request_id=self.request_id
        )


@dataclass(frozen=True, slots=True)
class Said:
    """An error body, read liberally."""

    number: int | None
    words: str
    searched: str = field(repr=False)
    """Everything it says, lower case; may quote the request."""

    def code(self, status: int) -> str:
        return str(status if self.number is None else self.number)


def listen(answer: HttpResponse) -> Said:
    found = responses.json_object(answer)
    code, message = found.get("code"), responses.text_at(found, "message") or ""
    details = " ".join(str(value) for value in (code, message, found.get("message_detail")) if value is not None)
    return Said(code if type(code) is int else None, _safe(message), details.lower())


def judge(answer: HttpResponse, *, endpoint: str = "") -> Verdict:
    """What a failed call means for its post. `endpoint` is the unit of a rate limit; left out it is the step's.

    Raises `AuthExpired`, `Throttled`, `AppRefused`, and `NoAnswer` for everything that is no answer.
    """
    status, said = answer.status, listen(answer)
    about: dict[str, Any] = {"code": said.code(status), "request_id": answer.headers.get(REQUEST_ID)}
    rule = next((rule for rule in RULES if _fits(rule, status, said)), Rule(None, None))
    if rule.then is Then.NO_ANSWER or (not 400 <= status < 500 and rule.then is Then.REFUSE):
        raise NoAnswer(_sentence(f"Pinterest gave no usable answer (HTTP {status})", said), **about)
    match rule.then:
        case Then.WAIT:
            seconds = wait_of(answer)
            raise Throttled(_wait_message(status, seconds), retry_after_seconds=seconds, endpoint=endpoint, **about)
        case Then.REFRESH:
            raise AuthExpired(_sentence("Pinterest does not accept the access token", said), **about)
        case Then.HOLD_APP:
            raise AppRefused(f"{_sentence('Pinterest refused the app', said)} {rule.advice}", **about)
    message = f"{_sentence(f'Pinterest refused (HTTP {status})', said)} {rule.advice}".strip()
    return Verdict(
        message,
        status,
        about["code"],
        rule.why,
        rule.rest_seconds,
        rule.then is Then.RECONNECT,
        about["request_id"],
    )


def failure(answer: HttpResponse, *, endpoint: str) -> ProviderError:
    """The same for who has no post: an error to raise."""
    try:
        return judge(answer, endpoint=endpoint).rejected()
    except ProviderError as error:
        return error


def wait_of(answer: HttpResponse) -> float | None:
    """Seconds to wait as the headers say, the longest of them; None when they say nothing.

    `x-ratelimit-reset` counts seconds to the end of the window, it is no time stamp. A header may hold a list, of
    which the first number counts.
    """
    named = [
        float(number[1])
        for name in ("retry-after", "x-ratelimit-reset")
        if (number := re.match(r"\s*([0-9]{1,9})(?![0-9])", answer.headers.get(name, "")))
    ]
    return max(1.0, *named) if named else None


def _wait_message(status: int, seconds: float | None) -> str:
    if status != 429:
        return "Pinterest has switched this off for the moment."
    if seconds is not None and seconds > DAILY_QUOTA_SECONDS:
        return (
            f"Pinterest's rate limit is reached for {math.ceil(seconds / 3600)} hours: a Trial app has used up its "
            "calls of the day. Standard access lifts that."
        )
    return "Pinterest's rate limit is reached."


def _fits(rule: Rule, status: int, said: Said) -> bool:
    if rule.status != status or rule.code not in (None, said.number):
        return False
    return not rule.wordings or any(wording in said.searched for wording in rule.wordings)


def _safe(message: str) -> str:
    """The words without what could be a token or the bytes of a picture: Pinterest quotes requests."""
    return responses.shortened(re.sub(r"[\w\-+/=%.]{48,}", "****", message[:10_000]))


def _sentence(ours: str, said: Said) -> str:
    return f'{ours}: "{said.words.rstrip(".")}".' if said.words else f"{ours}."
