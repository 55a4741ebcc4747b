"""One call to Pinterest for a job, and the table of Pinterest's refusals.

Status and code decide together, because a code has several meanings. Wording only refines them. A response that is not
in Pinterest's own form comes from a proxy or CDN and counts as no answer.
"""

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from socialpub.core.secrets.redaction import redact
from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import Job, Outcome, Wait
from socialpub.providers.error_table import NOT_4XX, Action, ErrorBody, ErrorRow, ErrorTable, as_outcome
from socialpub.providers.pinterest.options import how_to_list_boards
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    Reason,
    Rejected,
    hide_long_words,
    json_object,
    retry_after_seconds,
    shortened,
    text_at,
)

PAGE_SIZE = 250
MAX_PAGES = 20
"""An account has at most 2,000 boards, so more pages are a loop."""

BUSY_SECONDS, MAX_BUSY_SECONDS = 3.0, 900.0


GetPage = Callable[[str, dict[str, str]], HttpResponse]


def read_id(found: dict[str, Any], name: str) -> str | None:
    """Return an id as text: its digits often exceed 64 bits."""
    value = found.get(name)
    value = str(value) if type(value) is int else value
    return value if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else None


def pages(get: GetPage, url: str, limit: int = MAX_PAGES) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    """Yield the items of at most `limit` pages, and whether the page is the last. Raises `ProviderError`."""
    params, passed = {"page_size": str(PAGE_SIZE)}, set[str]()
    for _ in range(limit):
        response = get(url, params)
        if not response.ok:
            raise TABLE.classify(response)
        body = json_object(response)
        items, bookmark = body.get("items"), text_at(body, "bookmark")
        if not isinstance(items, list):
            raise NoAnswer("Pinterest's list could not be read.", request_id=response.headers.get(REQUEST_ID))
        yield [item for item in items if isinstance(item, dict)], bookmark is None
        if bookmark is None:
            return
        if bookmark in passed:
            raise NoAnswer(
                "Pinterest returned the same page of its list twice.", request_id=response.headers.get(REQUEST_ID)
            )
        passed.add(bookmark)
        params = {**params, "bookmark": bookmark}


def refusal(job: Job, rejection: Rejected) -> Outcome:
    if rejection.reason is Reason.BUSY:
        count = job.memo.get("busy", 0)
        pause = min(BUSY_SECONDS * 2**count, MAX_BUSY_SECONDS)
        return Wait(pause, "Pinterest is still writing to this board", {**job.memo, "busy": count + 1})
    return as_outcome(rejection)


def permalink(section: PinterestSection, pin_id: str) -> str:
    return f"{section.site_url}/pin/{pin_id}/"


# --- refusals ---------------------------------------------------------------------------------------------------------

REQUEST_ID = "x-pinterest-rid"
SANDBOX_API = "https://api-sandbox.pinterest.com/v5"

SPAM_REST_SECONDS = 6 * 3600.0
"""Pinterest does not report when a spam block ends, so the account pauses for hours."""
DAILY_QUOTA_SECONDS = 3600.0
"""A longer wait means the daily quota of a Trial app. The other windows last a minute."""


def board_ids() -> str:
    return f"To see the boards of this account and their ids, {how_to_list_boards()}."


RECONNECT = "Connect the account again and grant every requested permission."
NOT_APPROVED = (
    "Pinterest has not approved the app for this yet. Check the app at developers.pinterest.com. Connecting the "
    "account again does not help."
)
TRIAL = (
    "A Trial app creates pins only in Pinterest's sandbox. Request Standard access at developers.pinterest.com. To use "
    f'the sandbox, set api_url = "{SANDBOX_API}" in [providers.pinterest] and connect the account again.'
)
DENIED = (
    "This app may read boards and pins only of business accounts. Convert the account to a business account on "
    "Pinterest (free of charge), or ask Pinterest for this access."
)

ROWS: tuple[ErrorRow, ...] = (
    ErrorRow("Pinterest treats this as spam. socialpub pauses the account for 6 hours. Vary texts, links and images, "
             "and post less often.", {429}, wordings=("spam",), rest_seconds=SPAM_REST_SECONDS),
    ErrorRow(statuses={429}, action=Action.WAIT),
    ErrorRow(statuses={503}, codes={4197}, action=Action.WAIT),
    # The token, and the app.
    ErrorRow(RECONNECT, {401}, {3}, ("scope",), both=True, action=Action.RECONNECT),
    ErrorRow(NOT_APPROVED, {401}, {3}, action=Action.HOLD_APP),
    ErrorRow("The account may not use this board or pin.", {401}, {7}),
    ErrorRow(statuses={401}, action=Action.REFRESH),
    ErrorRow(DENIED, {403}, wordings=("pinner_data_access_denied",), reason=Reason.DENIED, content=False),
    ErrorRow(RECONNECT, {403}, {3}, action=Action.RECONNECT),
    ErrorRow(TRIAL, {403}, {29}, ("trial", "sandbox"), both=True, action=Action.HOLD_APP),
    ErrorRow("The board is secret or belongs to another account. Choose a board of this account.", {403}, {29},
             reason=Reason.NOT_PERMITTED, more=board_ids),
    # The post.
    ErrorRow("Use a larger image. 1000×1500 pixels are best.", {403}, {233}),
    ErrorRow("Pinterest cannot read the image. Save the image again as JPEG or PNG.", {403}, {235}),
    ErrorRow("Pinterest has blocked the account. Log in on pinterest.com and follow the instructions there.",
             {403}, {2625}, content=False),
    ErrorRow("Pinterest is reviewing the account. Wait until the review ends, then create the post again.",
             {403}, {2626}, content=False),
    ErrorRow("Check the account and the board on pinterest.com, and the app's permissions at "
             "developers.pinterest.com.", {403}, content=False),
    ErrorRow("The board does not exist. The board was deleted, belongs to the other environment (sandbox or "
             "production), or boardId is wrong.", {404}, {40}, reason=Reason.GONE, more=board_ids),
    ErrorRow("The board does not contain this section. Correct or remove boardSectionId.", {404}, {2031},
             reason=Reason.GONE),
    ErrorRow("The board, pin or media item no longer exists.", {404}, reason=Reason.GONE),
    ErrorRow(statuses={400}, codes={2787}, action=Action.NO_ANSWER),
    ErrorRow("boardId must be the board's id, not its name.", {400}, more=board_ids, wordings=(r"^\d+$", r"^\\d+$")),
    ErrorRow("Use another link: a complete, public http or https URL.", {400}, wordings=("url is invalid",)),
    ErrorRow("Check the texts, the link, the options and the media.", {400}),
    ErrorRow("This is a bug in socialpub. Report it.", {405}, content=False),
    ErrorRow("Another change to the same board is in progress. Try again later.", {409}, reason=Reason.BUSY,
             content=False),
    ErrorRow("Use smaller media.", {413}, reason=Reason.TOO_LARGE),
    ErrorRow(statuses=NOT_4XX | {408}, action=Action.NO_ANSWER),
)  # fmt: skip


def read_error(response: HttpResponse) -> ErrorBody:
    """Read a JSON object with `code` and `message`, which are present under every status.

    The code is a number, in one case a name (`PINNER_DATA_ACCESS_DENIED`).
    """
    body = json_object(response)
    code, message = body.get("code"), text_at(body, "message") or ""
    details = " ".join(str(value) for value in (code, message, body.get("message_detail")) if value is not None)
    number = code if type(code) is int else None
    return ErrorBody(
        _safe(message),
        None if number is None else str(number),
        frozenset() if number is None else {number},
        (details.lower(),),
        response.headers.get(REQUEST_ID),
        own_form=(number is not None or _is_name(code)) and isinstance(body.get("message"), str),
    )


def _is_name(code: object) -> bool:
    return isinstance(code, str) and re.fullmatch(r"[A-Z]{2,}(?:_[A-Z]+)+", code) is not None


def _safe(message: str) -> str:
    return shortened(hide_long_words(redact(message)[:10_000]))


def _wait_seconds(response: HttpResponse, _: ErrorBody, now: datetime | None) -> float | None:
    """Return the longest wait in the headers in seconds, or None.

    `x-ratelimit-reset` counts the seconds to the end of the window. It may be a list, whose first number counts.
    """
    reset = re.match(r"\s*([0-9]{1,9})(?![0-9])", response.headers.get("x-ratelimit-reset", ""))
    named = [retry_after_seconds(response, now), float(reset[1]) if reset else None]
    return max((seconds for seconds in named if seconds is not None), default=None)


def _message(row: ErrorRow, status: int, body: ErrorBody, wait_seconds: float | None) -> str:
    quoted = f': "{body.message.rstrip(".")}".' if body.message else "."
    match row.action:
        case Action.NO_ANSWER:
            return f"Pinterest sent no usable response (HTTP {status}){quoted}"
        case Action.WAIT:
            return _wait_message(status, wait_seconds)
        case Action.REFRESH:
            return f"Pinterest does not accept the access token{quoted}"
        case Action.HOLD_APP:
            return f"Pinterest refused the app{quoted} {row.advice}"
    advice = f"{row.advice} {row.more()}" if row.more else row.advice
    return f"Pinterest refused the request (HTTP {status}){quoted} {advice}".strip()


def _wait_message(status: int, seconds: float | None) -> str:
    if status != 429:
        return "Pinterest has temporarily switched this function off."
    if seconds is not None and seconds > DAILY_QUOTA_SECONDS:
        return (
            f"Pinterest's rate limit is reached for {math.ceil(seconds / 3600)} hours. A Trial app has used up its "
            "daily calls. Standard access removes this limit."
        )
    return "Pinterest's rate limit is reached."


TABLE = ErrorTable("Pinterest", ROWS, ErrorRow(), read_error, _wait_seconds, _message, REQUEST_ID)
call = TABLE.call
