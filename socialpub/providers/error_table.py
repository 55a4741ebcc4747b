"""The meaning of a network's refusal: each network has a table of rows, which is looked up here.

The first row that fits decides, so rows about the app come before rows about the account, and these before rows about
the post. A refusal without a row ends the post and nothing more: an unknown refusal never touches the connection.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from socialpub.providers.base import Job, Refused
from socialpub.providers.responses import (
    AppRefused,
    AuthExpired,
    HttpResponse,
    NoAnswer,
    Reason,
    Rejected,
    Throttled,
)

NOT_4XX = frozenset(range(1000)) - frozenset(range(400, 500))
"""Statuses of an answer that is neither what was asked for nor a refusal."""


class Action(StrEnum):
    REFUSE = "refuse"
    RECONNECT = "reconnect"
    """Refused until the owner connects the account again."""
    REFRESH = "refresh"
    HOLD_APP = "hold-app"
    WAIT = "wait"
    RESTART = "restart"
    """The network itself calls it worth one new try."""
    NO_ANSWER = "no-answer"
    """It may have happened."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error body, read liberally by a function of its network."""

    message: str
    """The sentence for people, without anything that could be a token; `""` when there is none."""
    code: str | None = None
    """The network's own name for it, to be shown."""
    codes: Set[int | str] = frozenset()
    """Every number and name in it, as rows name them."""
    texts: tuple[str, ...] = field(default=(), repr=False)
    """Every sentence of it, lower case; may quote the request."""
    request_id: str | None = None
    own_form: bool = True
    """Whether the network itself wrote it. A page of something in between, or nothing, is no answer."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind of refusal. It fits when the status is one of `statuses` (empty: any) and, where `codes` or `wordings`
    are given, one of the codes is in the body or one of the wordings in a sentence of it; with `both`, one of each."""

    advice: str = ""
    statuses: Set[int] = frozenset()
    codes: Set[int | str] = frozenset()
    wordings: tuple[str, ...] = ()
    """Parts of the network's own sentences, lower case."""
    both: bool = False
    action: Action = Action.REFUSE
    reason: Reason = Reason.OTHER
    wait_seconds: float | None = None
    """How long `WAIT` or `RESTART` waits; None: what the response names."""
    rest_seconds: float = 0.0
    """How long the account is left alone."""
    steps: Set[str] = frozenset()
    """`WAIT`: the steps of this account that wait with the refused one."""
    more: Callable[[], str] | None = None
    """A further sentence of advice, which depends on the machine that this runs on."""
    content: bool = True
    """`REFUSE`: the post itself is refused. False: the same post may be accepted later."""

    @property
    def refuses_content(self) -> bool:
        return self.content and self.action is Action.REFUSE

    def fits(self, status: int, body: ErrorBody) -> bool:
        if self.statuses and status not in self.statuses:
            return False
        marks = []
        if self.codes:
            marks.append(not self.codes.isdisjoint(body.codes))
        if self.wordings:
            marks.append(any(wording in text for wording in self.wordings for text in body.texts))
        return not marks or (all(marks) if self.both else any(marks))


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """One network's rows, and the functions that are its own."""

    network: str
    rows: tuple[ErrorRow, ...]
    unlisted: ErrorRow
    """Stands for a refusal that no row knows."""
    read: Callable[[HttpResponse], ErrorBody]
    wait_seconds: Callable[[HttpResponse, ErrorBody, datetime | None], float | None]
    """How long the response asks to wait, as of an instant; None when it names no time."""
    message: Callable[[ErrorRow, int, ErrorBody, float | None], str]
    """The sentence for the owner: row, status, body, and the seconds to wait."""
    request_id_header: str = ""

    def call(self, job: Job, method: str, url: str, **request: Any) -> HttpResponse:
        """Call the network as the account, and note for the attempt what the network's support asks for."""
        response = job.call(method, url, token=job.token, **request)
        job.trace.request_id = response.headers.get(self.request_id_header)
        job.trace.code = None if response.ok else (self.read(response).code or str(response.status))
        return response

    def classify(self, response: HttpResponse, *, now: datetime | None = None) -> Rejected:
        """Return the refusal that a failed call is for its post. A caller without a post raises it.

        Raises `AuthExpired`, `Throttled`, `AppRefused`, and `NoAnswer` for everything that is no answer.
        """
        status, body = response.status, self.read(response)
        if not body.own_form:
            message = f"Something between here and {self.network} answered in its place (HTTP {status})."
            raise NoAnswer(message, code=str(status), request_id=body.request_id)
        row = find_row(self.rows, status, body) or self.unlisted
        code, request_id = body.code or str(status), body.request_id
        seconds = None
        if row.action is Action.WAIT:
            named = row.wait_seconds is not None
            seconds = row.wait_seconds if named else self.wait_seconds(response, body, now)
        message = self.message(row, status, body, seconds)
        match row.action:
            case Action.NO_ANSWER:
                raise NoAnswer(message, code=code, request_id=request_id)
            case Action.REFRESH:
                raise AuthExpired(message, code=code, request_id=request_id)
            case Action.HOLD_APP:
                raise AppRefused(message, code=code, request_id=request_id)
            case Action.WAIT:
                raise Throttled(message, retry_after_seconds=seconds, steps=row.steps, code=code, request_id=request_id)
        return Rejected(
            message,
            status=status,
            reason=row.reason,
            reauth=row.action is Action.RECONNECT,
            rest_seconds=row.rest_seconds,
            content=row.refuses_content,
            code=code,
            request_id=request_id,
        )


def as_outcome(error: Rejected) -> Refused:
    """Return the end of a post that was refused in this way."""
    too_long = error.reason is Reason.TOO_LONG
    return Refused(
        error.message, error.code, error.reauth, error.rest_seconds, content=error.content, too_long=too_long
    )


def find_row(rows: tuple[ErrorRow, ...], status: int, body: ErrorBody) -> ErrorRow | None:
    return next((row for row in rows if row.fits(status, body)), None)
