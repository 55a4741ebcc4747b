"""Looks up the meaning of a refusal in the table of its network.

The first matching row decides: rows about the app come first, then rows about the account, then rows about the post. A
refusal without a row ends only the post and never affects the connection.
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
    foreign_answer,
)

NOT_4XX = frozenset(range(1000)) - frozenset(range(400, 500))
"""Statuses that are not a refusal."""


class Action(StrEnum):
    REFUSE = "refuse"
    RECONNECT = "reconnect"
    """Refused until the owner reconnects the account."""
    REFRESH = "refresh"
    HOLD_APP = "hold-app"
    WAIT = "wait"
    RESTART = "restart"
    """The network suggests another try."""
    NO_ANSWER = "no-answer"
    """The call may have had its effect."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    message: str
    """The message for people, with possible tokens masked. `""`: no message."""
    code: str | None = None
    """The network's code, for display."""
    codes: Set[int | str] = frozenset()
    """Every number and name, in the form of the rows."""
    texts: tuple[str, ...] = field(default=(), repr=False)
    """Every sentence, lower case. May quote the request."""
    request_id: str | None = None
    own_form: bool = True
    """Whether the body has the network's form. A page of a proxy or an empty body does not."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind of refusal.

    A row matches when the status is one of `statuses` (empty: any). If the row has `codes` or `wordings`, the body must
    also contain one of them, or with `both` one of each.
    """

    advice: str = ""
    statuses: Set[int] = frozenset()
    codes: Set[int | str] = frozenset()
    wordings: tuple[str, ...] = ()
    """Parts of the network's sentences, lower case."""
    both: bool = False
    action: Action = Action.REFUSE
    reason: Reason = Reason.OTHER
    wait_seconds: float | None = None
    """How long `WAIT` or `RESTART` waits; None: the wait in the response."""
    rest_seconds: float = 0.0
    """How long the account is paused."""
    steps: Set[str] = frozenset()
    """`WAIT`: the steps of this account that wait with the refused step."""
    more: Callable[[], str] | None = None
    """Additional advice that depends on this host."""
    content: bool = True
    """`REFUSE`: the network refuses the post itself. False: it may accept the same post later."""

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
    network: str
    rows: tuple[ErrorRow, ...]
    unlisted: ErrorRow
    """For a refusal without a row."""
    read: Callable[[HttpResponse], ErrorBody]
    wait_seconds: Callable[[HttpResponse, ErrorBody, datetime | None], float | None]
    """Returns the wait in the response, from a given time. None: the response does not contain a wait."""
    message: Callable[[ErrorRow, int, ErrorBody, float | None], str]
    """Returns the message for the owner from the row, the status, the body and the wait."""
    request_id_header: str = ""

    def call(self, job: Job, method: str, url: str, **request: Any) -> HttpResponse:
        """Call the network as the account, and store the request id and code for the attempt."""
        response = job.call(method, url, token=job.token, **request)
        job.trace.request_id = response.headers.get(self.request_id_header)
        job.trace.code = None if response.ok else (self.read(response).code or str(response.status))
        return response

    def classify(self, response: HttpResponse, *, now: datetime | None = None) -> Rejected:
        """Return the refusal that a failed call means for its post. A caller without a post raises the refusal.

        Raises `AuthExpired`, `Throttled`, `AppRefused`, and `NoAnswer` for a response in another form.
        """
        status, body = response.status, self.read(response)
        if not body.own_form:
            raise foreign_answer(response, self.network, body.request_id)
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
    return Refused(
        error.message,
        error.code,
        error.reauth,
        error.rest_seconds,
        content=error.content,
        too_long=error.reason is Reason.TOO_LONG,
        parent_missing=error.reason is Reason.PARENT_MISSING,
    )


def find_row(rows: tuple[ErrorRow, ...], status: int, body: ErrorBody) -> ErrorRow | None:
    return next((row for row in rows if row.fits(status, body)), None)
