"""One call to X for a job, and the table of X's refusals.

X distinguishes many cases only by wording, so the table lists known wordings beside types and codes. X's error bodies
have five shapes, and X's own responses carry `x-transaction-id`. Any other body (empty, a page, a gateway's JSON) is
not from X's API and counts as no answer.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from socialpub.core.secrets.redaction import redact
from socialpub.providers.error_table import NOT_4XX, Action, ErrorBody, ErrorRow, ErrorTable
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    Reason,
    Rejected,
    as_object,
    hide_long_words,
    http_date,
    object_at,
    read_words,
    shortened,
)


def read_data(response: HttpResponse) -> dict[str, Any]:
    """Return the `data` of a success, empty without `data`. Raises `NoAnswer` when the body is not JSON.

    X may answer an append without a body.
    """
    return object_at(as_object(response.json()), "data") if response.body.strip() else {}


def require_data(response: HttpResponse) -> dict[str, Any]:
    """Return the `data` of a success. Raises `NoAnswer` without `data`: the response does not come from X."""
    data = read_data(response)
    if not data:
        raise NoAnswer("X's response does not contain data.", request_id=response.headers.get(REQUEST_ID))
    return data


def read_id(response: HttpResponse, what: str) -> str:
    """Return `data.id`. Raises `NoAnswer` when it is missing: `what` may exist."""
    post_id = read_data(response).get("id")
    if isinstance(post_id, str) and re.fullmatch(r"[0-9]{1,19}", post_id):
        return post_id
    raise NoAnswer(f"X accepted the {what} but did not return an id.", request_id=response.headers.get(REQUEST_ID))


def permalink(site_url: str, username: str | None, post_id: str) -> str:
    return f"{site_url}/{username or 'i'}/status/{post_id}"


# --- refusals ---------------------------------------------------------------------------------------------------------

REQUEST_ID = "x-transaction-id"
NO_TYPE = "about:blank"
TYPE_OF_X = re.compile(r"https?://(?:[a-z]+\.)?(?:x|twitter)\.com/", re.IGNORECASE)
MAX_MESSAGE_LENGTH = 300
HOUR = 3600.0

NO_MEDIA_SCOPE = (
    "X refused the upload. The connection probably lacks the scope media.write. Connect the account again and grant "
    "this scope. Posts without media still work."
)
NO_CREDITS = "The app has no credits left or has reached its spending limit. Add credits at console.x.com."
TOO_LARGE = "Use smaller media."
DUPLICATE_RULES = "duplicate-rules"
"""Means a duplicate wherever it is in a refusal."""
WINDOW_FULL = "X's rate limit for this endpoint is reached."
DAILY_LIMIT_CODES = frozenset({185, 344})
DAILY_LIMIT_WORDINGS = ("over daily status update limit", "reached your daily limit for sending")
DAILY_PAUSE_SECONDS = 3 * HOUR
"""X counts an account's posts per day in half-hour slices and does not report the end. X advises waiting for hours."""

FETCHED_AGAIN = "socialpub fetches the account data again, because the account's subscription may have ended."
SHORTEN_VIDEO = f"Shorten the video, or post it from an account with X Premium. {FETCHED_AGAIN}"
TOO_LONG_VIDEO = ("post a video longer than", "duration too long", "exceeds max duration")
"""Parts of X's messages, in lower case. The last two come from the processing (integrators)."""

TOO_LARGE_STATUSES = frozenset({413, 431})

ROWS: tuple[ErrorRow, ...] = (
    ErrorRow(statuses=NOT_4XX | {408}, action=Action.NO_ANSWER),
    ErrorRow(statuses={401}, action=Action.REFRESH),
    # The app, with any status.
    ErrorRow(NO_CREDITS, {402}, action=Action.HOLD_APP),
    ErrorRow(NO_CREDITS, codes={"credits", "credits-depleted", "creditsdepleted"},
             wordings=("does not have any credits", "credits depleted"), action=Action.HOLD_APP),
    ErrorRow("The app has used up its plan for this period. Change the plan at console.x.com, or wait.",
             codes={"usage-capped", "usagecapexceeded"}, wordings=("usage cap exceeded",), action=Action.HOLD_APP),
    ErrorRow("The app may not use this endpoint. Add the app to a project with a suitable plan at console.x.com.",
             codes={"client-forbidden", "client-not-enrolled", "official-client-forbidden", 453},
             wordings=("attached to a project", "access to a subset of"), action=Action.HOLD_APP),
    ErrorRow("X has suspended the app. Check the app at console.x.com.", codes={"app-suspended"},
             action=Action.HOLD_APP),
    # The account.
    ErrorRow("X has suspended or locked the account. Log in on x.com and follow the instructions there.", {400, 403},
             {"user-suspended", 64, 326}, ("your account is suspended", "user used for authentication is suspended",
                                           "account is temporarily locked"), rest_seconds=24 * HOUR, content=False),
    ErrorRow("X does not currently accept posts from this account. socialpub pauses the account for an hour. Try again "
             "later.",
             {403}, wordings=("not permitted to access this feature",), rest_seconds=HOUR, content=False),
    ErrorRow("X treats this post as automated spam. socialpub pauses the account for 6 hours. Change the text, then "
             "try again.", {400, 403}, {226}, ("might be automated",), rest_seconds=6 * HOUR),
    ErrorRow("The account has reached X's limit of posts per day.", {400, 403, 429}, DAILY_LIMIT_CODES,
             DAILY_LIMIT_WORDINGS, action=Action.WAIT),
    ErrorRow(WINDOW_FULL, {429}, action=Action.WAIT),
    ErrorRow(WINDOW_FULL, codes={88, "rate-limit-exceeded"}, action=Action.WAIT),
    ErrorRow("X requires a token of the account, not of the app. Connect the account again.", {403},
             {"unsupported-authentication"}, ("application-only is forbidden",), action=Action.RECONNECT),
    # The post.
    ErrorRow("X does not say why.", {400, 403}, wordings=("media ids are invalid",), reason=Reason.MEDIA_INVALID),
    ErrorRow(f"Shorten the text. {FETCHED_AGAIN}", {400, 403}, {186},
             ("text is too long", "needs to be a bit shorter"), reason=Reason.TOO_LONG),
    ErrorRow("Convert the file to JPEG, PNG, GIF or MP4 (H.264), then create the post again.", {400, 403},
             wordings=("media type unrecognized",)),
    ErrorRow("Use either media or quotePostId, not both.", {400}, wordings=("you can only provide one of",)),
    ErrorRow("This is a bug in socialpub. Report it.", {400},
             wordings=("request body must be a json object", "requests with bodies must have content-type",
                       "request body is not valid json"), content=False),
    ErrorRow("X already has a post with this text. Change the text.", {400, 403}, {187, DUPLICATE_RULES},
             ("duplicate content", "status is a duplicate"), reason=Reason.DUPLICATE),
    ErrorRow("Keep at most one cashtag ($TICKER) in the text.", {400, 403}, wordings=("one cashtag",)),
    ErrorRow(SHORTEN_VIDEO, {400, 403}, wordings=TOO_LONG_VIDEO, reason=Reason.TOO_LONG),
    ErrorRow("An app may reply only to the account's own posts and to posts that mention or quote the account. "
             "Remove inReplyToPostId, replyToPostId or quotePostId, or choose another post.", {400, 403}, {433},
             ("you can only reply to or quote posts", "reply to this conversation is not allowed",
              "restricted who can reply")),
    ErrorRow("The post to reply to was deleted, or this account cannot see it. Choose another post.", {400, 403},
             {385}, ("deleted or not visible",), reason=Reason.PARENT_MISSING),
    ErrorRow("X blocks a link in the text. Remove the link.", {400, 403}, wordings=("contains an invalid url",)),
    ErrorRow("Check the text length, the media and the options. At console.x.com, check that the app may write.", {403},
             wordings=("not permitted to perform this action",), reason=Reason.TOO_LONG),
    ErrorRow("A post or media item in the request no longer exists, or the app cannot access it.", {404},
             reason=Reason.GONE),
    ErrorRow("A media item in the request no longer exists.", {400}, wordings=("badrequest: not found",),
             reason=Reason.GONE),
    ErrorRow(TOO_LARGE, TOO_LARGE_STATUSES, reason=Reason.TOO_LARGE),
    ErrorRow("Correct the fields in X's message, then create the post again.", {400}),
    ErrorRow("Check the options, the account on x.com and the app's permissions at console.x.com.", {403},
             content=False),
)  # fmt: skip


def classify(
    response: HttpResponse, *, now: datetime | None, media: bool = False, sent_bytes: bool = False
) -> Rejected:
    """Return the refusal that a failed call means for its post. Raises as `ErrorTable.classify`.

    `media` marks upload calls. `sent_bytes` marks calls that carry the file: X's edge refuses large files without a
    message.
    """
    body = read_error(response)
    code = str(response.status)
    refused: dict[str, Any] = {"status": response.status, "code": code, "request_id": body.request_id}
    if media and body.own_form and response.status == 403 and body.message.lower() == "forbidden" and body.code is None:
        return Rejected(NO_MEDIA_SCOPE, **refused)
    if sent_bytes and not body.own_form and response.status in TOO_LARGE_STATUSES:
        message = f"X refused the request (HTTP {code}). {TOO_LARGE}"
        return Rejected(message, reason=Reason.TOO_LARGE, content=True, **refused)
    return TABLE.classify(response, now=now)


def read_error(response: HttpResponse) -> ErrorBody:
    """Read an error body in any of X's shapes. The text of any other body is ignored."""
    request_id = response.headers.get(REQUEST_ID)
    try:
        body = response.json()
    except NoAnswer:
        body = None
    texts = _texts(body)
    if not _is_of_x(body) and not (request_id and isinstance(body, dict) and texts):
        words = read_words(response) if request_id else None
        if words is None:
            return ErrorBody("", request_id=request_id, own_form=False)
        return ErrorBody(words, texts=(words.lower(),), request_id=request_id)
    parts = [part for part in _parts(body) if isinstance(part, dict)]
    types = {
        str(value).rstrip("/").rsplit("/", 1)[-1].lower()
        for part in parts
        for value in (part.get("type"), part.get("reason"), _one_word(part.get("title")))
        if isinstance(value, str) and value != NO_TYPE
    }
    if any(_names_duplicate(part) for part in parts):
        types.add(DUPLICATE_RULES)
    numbers = {part["code"] for part in parts if type(part.get("code")) is int}
    return ErrorBody(
        _safe(texts[0]) if texts else "",
        str(min(numbers)) if numbers else min(types, default=None),
        numbers | types,
        tuple(text.lower() for text in texts),
        request_id,
    )


def _is_of_x(body: Any) -> bool:
    """Return whether the body has a shape of X.

    These are `errors`, a problem of X's type, code and message, OAuth's `error`, and the old form with `request`.
    """
    if not isinstance(body, dict):
        return False
    errors, kind = body.get("errors"), body.get("type") or NO_TYPE
    if isinstance(errors, list) and errors:
        return all(isinstance(error, str | dict) for error in errors)
    if isinstance(kind, str) and (kind == NO_TYPE or TYPE_OF_X.match(kind)):
        said = [key for key in ("title", "detail", "type", "status") if body.get(key)]
        if len(said) > 1 and {"title", "detail"}.intersection(said):
            return True
    coded = type(body.get("code")) is int and isinstance(body.get("message"), str)
    old = isinstance(body.get("request"), str) and body["request"].startswith("/")
    described = old or isinstance(body.get("error_description"), str)
    return coded or (isinstance(body.get("error"), str) and described)


def _names_duplicate(part: dict[str, Any]) -> bool:
    """Return whether a part reports a duplicate. Fields that quote our own request do not count."""
    said = (value for key, value in part.items() if key not in ("parameters", "parameter", "value"))
    return any(isinstance(value, str) and DUPLICATE_RULES in value for value in said)


def _parts(body: Any) -> list[Any]:
    listed = body.get("errors") if isinstance(body, dict) else None
    return [body, *listed] if isinstance(listed, list) else [body]


def _texts(body: Any) -> list[str]:
    first, *errors = _parts(body)
    said = [error.get(key) for key in ("message", "detail") for error in errors if isinstance(error, dict)]
    said += errors
    if isinstance(first, dict):
        said += [first.get(key) for key in ("detail", "title", "message", "error_description", "error")]
    return [text.strip() for text in said if isinstance(text, str) and text.strip()]


def _one_word(title: Any) -> str | None:
    """Return a title such as `CreditsDepleted`, which is a code. Titles of several words only repeat the status."""
    return title if isinstance(title, str) and re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", title) else None


def _safe(text: str) -> str:
    return shortened(hide_long_words(redact(" ".join(text.split()))), MAX_MESSAGE_LENGTH)


def _wait_seconds(response: HttpResponse, body: ErrorBody, now: datetime | None) -> float | None:
    daily = body.codes & DAILY_LIMIT_CODES or any(part in text for part in DAILY_LIMIT_WORDINGS for text in body.texts)
    return DAILY_PAUSE_SECONDS if daily else seconds_until_reset(response.headers, now)


def _message(row: ErrorRow, status: int, body: ErrorBody, _: float | None) -> str:
    if row.action is Action.NO_ANSWER:
        return f"X sent no usable response (HTTP {status})."
    quoted = f': "{body.message}"{"" if body.message.endswith(".") else "."}' if body.message else "."
    if row.action is Action.REFRESH:
        return f"X no longer accepts the access token{quoted}"
    return f"X refused the request (HTTP {status}){quoted} {row.advice}"


TABLE = ErrorTable(
    "X",
    ROWS,
    ErrorRow("Correct the post as X's message says, then create it again."),
    read_error,
    _wait_seconds,
    _message,
    REQUEST_ID,
)
call = TABLE.call


# --- rate limits ------------------------------------------------------------------------------------------------------
#
# A reset is a time on X's clock. The `Date` of the same response shows that clock.

CLOCK_DOUBT_SECONDS = 60
"""A reset that is longer past means a wrong clock, not an open window."""
MAX_WAIT_SECONDS = 366 * 86400
"""X's windows last 15 minutes, a day or a month. A later time is not a reset."""


def seconds_until_reset(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """Return the seconds until X accepts the call again. None: the response does not contain a plausible time.

    A 24-hour window counts only when it is used up. The window that opens last decides. `now` replaces a missing
    `Date`.
    """
    given_at = http_date(headers.get("date")) or now
    daily = [
        _seconds_until(_number(headers.get(f"x-{who}-limit-24hour-reset")), given_at)
        for who in ("user", "app")
        if _number(headers.get(f"x-{who}-limit-24hour-remaining")) == 0
    ]
    believable = [seconds for seconds in daily if seconds is not None]
    if believable:
        return max(believable)
    window = _seconds_until(_number(headers.get("x-rate-limit-reset")), given_at)
    if window is not None:
        return window
    retry_after = headers.get("retry-after")
    if (seconds := _number(retry_after)) is not None:
        return _believed(seconds)
    moment = http_date(retry_after)
    return None if moment is None else _seconds_until(moment.timestamp(), given_at)


def _seconds_until(reset: float | None, given_at: datetime | None) -> float | None:
    return None if reset is None or given_at is None else _believed(reset - given_at.timestamp())


def _believed(seconds: float) -> float | None:
    return max(1.0, float(math.ceil(seconds))) if -CLOCK_DOUBT_SECONDS < seconds <= MAX_WAIT_SECONDS else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text.strip()) else None
