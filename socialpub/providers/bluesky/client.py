"""One call to the account's server for a job, and the table of its refusals.

A refusal is JSON with `error`, a name, and `message`, a sentence for people. Any other body comes from a proxy.
"""

import math
import re
from datetime import datetime
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import Job, Memo, Wait
from socialpub.providers.bluesky import servers
from socialpub.providers.error_table import NOT_4XX, Action, ErrorBody, ErrorRow, ErrorTable
from socialpub.providers.responses import (
    AuthExpired,
    HttpResponse,
    NotSent,
    ProviderError,
    Reason,
    Rejected,
    http_date,
    json_object,
    named_wait,
    plausible_wait,
    retry_after_seconds,
    shortened,
    text_at,
)

HOUR = 3600.0
POST = "app.bsky.feed.post"
INACTIVE_SECONDS = 900.0
"""How often a post for a deactivated account is tried again."""

SUSPENDED = frozenset({"AccountTakedown", "AccountSuspended"})
BUG = "This is a bug in socialpub. Report it."
CONNECT_AGAIN = "Connect the account again."
TOO_LARGE_STATUS = 413

ROWS: tuple[ErrorRow, ...] = (
    ErrorRow(statuses=NOT_4XX | {408}, action=Action.NO_ANSWER),
    ErrorRow(statuses={429}, action=Action.WAIT),
    # The account.
    ErrorRow("Bluesky has suspended the account or taken it down. Open the Bluesky app and follow the instructions "
             "there. socialpub pauses the account for a day.", codes=SUSPENDED,
             rest_seconds=24 * HOUR, content=False),
    ErrorRow("The account is deactivated. Activate it in the Bluesky app. Until then, socialpub tries again.",
             codes={"AccountDeactivated"}, action=Action.WAIT, wait_seconds=INACTIVE_SECONDS),
    ErrorRow(f"The account's server no longer has the account: it was deleted or moved. {CONNECT_AGAIN}",
             {400, 403, 404}, {"AccountNotFound", "RepoNotFound"}, ("could not find user", "could not find repo"),
             action=Action.RECONNECT),
    ErrorRow(statuses={400, 401, 403}, codes={"ExpiredToken", "InvalidToken"}, action=Action.REFRESH),
    ErrorRow(statuses={401}, action=Action.REFRESH),
    # The post.
    ErrorRow("The media were removed before the post.", codes={"BlobNotFound"}, reason=Reason.MEDIA_INVALID),
    ErrorRow("Use a smaller file.", {TOO_LARGE_STATUS}, reason=Reason.TOO_LARGE),
    ErrorRow("Use a smaller file.", {400}, {"BlobTooLarge"}, ("blob too big", "too large"), reason=Reason.TOO_LARGE),
    ErrorRow(f"The server does not know the form of the file. {BUG}", codes={"InvalidSize", "InvalidMimeType"},
             content=False),
    ErrorRow("The record does not exist.", codes={"RecordNotFound"}, reason=Reason.GONE),
    ErrorRow("Another record has the key of this post.", codes={"InvalidSwap"}, reason=Reason.DUPLICATE,
             content=False),
    ErrorRow(f"The server refused the key of the post. {BUG}", {400}, wordings=("invalid record key",), content=False),
    ErrorRow("This server cannot publish posts.", codes={"MethodNotImplemented"}, wordings=("no service configured",),
             content=False),
    ErrorRow("Correct the post as the message says, then create it again.", {400}, {"InvalidRequest", "InvalidRecord"}),
)  # fmt: skip


def call(
    job: Job, section: BlueskySection, method: str, name: str, *, authorized: bool = True, **request: Any
) -> HttpResponse:
    """Call the account's server. Store the code of a refusal for the attempt. Raises also `NotSent`."""
    url = f"{server_of(job, section)}/xrpc/{name}"
    if authorized:
        request["token"] = job.token
    response = job.call(method, url, address=servers.pick_address(section, url), **request)
    job.trace.code = None if response.ok else (read_error(response).code or str(response.status))
    return response


TRIES_OF_DECORATIONS = 3
_PAUSES = (15.0, 60.0)
_LONGEST_PAUSE = 300.0
_STOPS_THE_POST = frozenset({"AccountDeactivated"})


def ask_again(memo: Memo, what: str, error: ProviderError) -> Wait | None:
    """Return the wait before another try for a decoration of the post. None: the post goes out without it.

    Raises the error if it stops the post as well.
    """
    if isinstance(error, NotSent | AuthExpired) or error.code in _STOPS_THE_POST:
        raise error
    tries = memo.get("tries", {}).get(what, 0) + 1
    if isinstance(error, Rejected) or tries >= TRIES_OF_DECORATIONS:
        return None
    seconds = min(named_wait(error) or _PAUSES[tries - 1], _LONGEST_PAUSE)
    message = f"{what}: {error.message} socialpub tries again."
    return Wait(seconds, message, {**memo, "tries": {**memo.get("tries", {}), what: tries}})


def add_note(memo: Memo, sentence: str) -> Memo:
    notes = [note for note in memo.get("notes", ()) if note != sentence]
    return {**memo, "notes": [*notes, sentence]}


def server_of(job: Job, section: BlueskySection) -> str:
    return job.account.server or section.service


def classify(response: HttpResponse, *, now: datetime | None = None, sent_bytes: bool = False) -> Rejected:
    """Return the refusal that a failed call means for its post. Raises as `ErrorTable.classify`.

    `sent_bytes` marks calls that carry a file: a proxy in front of the server refuses large files with its own page.
    """
    if sent_bytes and response.status == TOO_LARGE_STATUS:
        message = f"The account's server refused the file (HTTP {response.status}). Use a smaller file."
        return Rejected(message, status=response.status, reason=Reason.TOO_LARGE, content=True, code="PayloadTooLarge")
    return TABLE.classify(response, now=now)


def read_error(response: HttpResponse) -> ErrorBody:
    body = json_object(response)
    name, message = text_at(body, "error"), text_at(body, "message") or ""
    if name is None:
        return ErrorBody("", own_form=response.status == TOO_MANY)
    code = name if re.fullmatch(r"[A-Za-z]{1,64}", name) else None
    return ErrorBody(shortened(message), code, frozenset({name}), (message.lower(),))


TOO_MANY = 429
"""A proxy in front of the server may also limit calls, with its own page. The call that publishes may have arrived."""


def _wait_seconds(response: HttpResponse, _: ErrorBody, now: datetime | None) -> float | None:
    """Return the wait of `RateLimit-Reset`, a time on the server's clock, or of `Retry-After`."""
    reset = response.headers.get("ratelimit-reset", "").strip()
    given_at = http_date(response.headers.get("date")) or now
    if re.fullmatch(r"[0-9]{1,12}", reset) and given_at is not None:
        wait = plausible_wait(float(math.ceil(int(reset) - given_at.timestamp())))
        if wait is not None:
            return wait
    return retry_after_seconds(response, now)


def _message(row: ErrorRow, status: int, body: ErrorBody, _: float | None) -> str:
    if row.action is Action.NO_ANSWER:
        return f"The account's server sent no usable response (HTTP {status})."
    quoted = f': "{body.message}"{"" if body.message.endswith(".") else "."}' if body.message else "."
    if row.action is Action.REFRESH:
        return f"The account's server no longer accepts the access token{quoted}"
    if row.action is Action.WAIT and not row.advice:
        return "The account has reached a rate limit of its server."
    return f"The account's server refused the request (HTTP {status}){quoted} {row.advice}"


TABLE = ErrorTable(
    "the account's server",
    ROWS,
    ErrorRow("Correct the post as the message says, then create it again."),
    read_error,
    _wait_seconds,
    _message,
)
