"""Pinterest's replies: the request id and rate headers of each, its refusals, and its pages of lists."""

import base64
import binascii
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.pinterest.models import PinterestSwitches

ERRORS: dict[str, tuple[int, int, str]] = {
    "invalid_request": (400, 1, "Invalid request."),
    "invalid_url": (400, 1, "Entered URL is invalid."),
    "unreachable_url": (400, 1, "Sorry! We are unable to reach the URL. Please check it and try again."),
    "2787": (400, 2787, "Sorry, something went wrong on our end."),
    "authentication_failed": (401, 2, "Authentication failed."),
    "unapproved": (401, 3, "Your application consumer type is not supported, please contact support."),
    "missing_scope": (403, 3, "Your token is missing the required scopes: pins:write"),
    "trial": (
        403,
        29,
        "Apps with Trial access may not create Pins in production. Use the API Sandbox (api-sandbox.pinterest.com).",
    ),
    "not_permitted": (403, 29, "You are not permitted to access that resource."),
    "pinner_data": (
        403,
        403,
        "PINNER_DATA_ACCESS_DENIED: this app may not read data of accounts that are no business.",
    ),
    "image_too_small": (403, 233, "The image is too small."),
    "image_broken": (403, 235, "The image is broken."),
    "account_disapproved": (403, 2625, "Your account was disapproved."),
    "account_under_review": (403, 2626, "Your account is under review."),
    "board_not_found": (404, 40, "Board not found."),
    "section_not_found": (404, 2031, "Board section not found."),
    "pin_not_found": (404, 50, "Pin not found."),
    "media_not_found": (404, 404, "Media upload not found."),
    "conflict": (409, 409, "Could not get exclusive access to the board. Please try again."),
    "rate_limited": (429, 8, "You have exceeded your rate limit. Try again later."),
    "spam": (429, 8, "This was blocked because it looks like spam."),
    "server_error": (500, 500, "Sorry, something went wrong."),
    "ramped_down": (503, 4197, "This endpoint is ramped down for now. Please try again later."),
}


def status_code_and_message(name: str) -> tuple[int, int, str]:
    """Return status, code and message. Raise ValueError for a name that is not in the list."""
    if name not in ERRORS:
        raise ValueError(f"pinterest has no refusal named {name!r} (known: {', '.join(ERRORS)})")
    return ERRORS[name]


T = TypeVar("T")


def ok(pinterest: PinterestSwitches, status: int, data: Any) -> Reply:
    limit = pinterest.limits["org_read"]
    return json_reply(
        status,
        data,
        [
            ("x-pinterest-rid", secrets.token_hex(8)),
            ("x-ratelimit-limit", f"{limit}, {limit};w=60"),
            ("x-ratelimit-remaining", str(limit - 1)),
            ("x-ratelimit-reset", "60"),
        ],
    )


def error(pinterest: PinterestSwitches, status: int, code: int, message: str) -> Reply:
    return ok(pinterest, status, {"code": code, "message": message})


def named_error(pinterest: PinterestSwitches, name: str) -> Reply:
    """Return the error with this name of ours. Raise ValueError for another name."""
    status, code, message = status_code_and_message(name)
    if name == "spam":
        return ok(pinterest, status, {"code": code, "message": message, "message_detail": "spam"})
    return error(pinterest, status, code, message)


def invalid(pinterest: PinterestSwitches, status: int, code: int, message: str) -> Refusal:
    return Refusal(error(pinterest, status, code, message))


def refused(pinterest: PinterestSwitches, name: str) -> Refusal:
    return Refusal(named_error(pinterest, name))


def rate_limited(pinterest: PinterestSwitches, seconds: float, told_in: str) -> Reply:
    """Return a scripted 429. `told_in` says where its wait is: in the window's headers, `retry-after`, or nowhere."""
    reply = with_rate_headers(named_error(pinterest, "rate_limited"), [])
    if told_in in ("window", "day"):
        reply.headers += [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", str(int(seconds)))]
    elif told_in == "retry-after":
        reply.headers.append(("retry-after", str(int(seconds))))
    return reply


def with_rate_headers(reply: Reply, headers: Headers) -> Reply:
    """Replace the rate headers of a reply."""
    reply.headers = [*(one for one in reply.headers if not one[0].startswith("x-ratelimit")), *headers]
    return reply


def paged(pinterest: PinterestSwitches, request: SandboxRequest, found: Sequence[T], show: Callable[[T], Any]) -> Reply:
    query = request.query()
    written = query.get("page_size", "25")
    if not written.isdecimal() or not 1 <= int(written) <= 250:
        raise invalid(pinterest, 400, 1, f"Invalid request: page_size {written!r} is not between 1 and 250.")
    size, begin = int(written), _begin(pinterest, query.get("bookmark", ""))
    more = begin + size < len(found)
    bookmark = base64.urlsafe_b64encode(f"from:{begin + size}".encode()).decode() if more else None
    items = [show(one) for one in found[begin : begin + size]]
    return ok(pinterest, 200, {"items": items, "bookmark": bookmark})


def _begin(pinterest: PinterestSwitches, bookmark: str) -> int:
    if not bookmark:
        return 0
    try:
        word, _, number = base64.urlsafe_b64decode(bookmark).decode().partition(":")
    except (binascii.Error, ValueError):
        word, number = "", ""
    if word != "from" or not number.isdecimal():
        raise invalid(pinterest, 400, 1, "Invalid request: the bookmark is not valid.")
    return int(number)


def zoneless(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
