"""The headers in which X reports its rate limits."""

import math
import secrets
from datetime import UTC, datetime
from email.utils import format_datetime

from socialpub.sandbox.reply import Headers, Reply
from socialpub.sandbox.x import problems


def window_headers(prefix: str, limit: int, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-limit", str(limit)),
        (f"{prefix}-remaining", str(remaining)),
        (f"{prefix}-reset", str(math.ceil(reset))),
    ]


def transaction_header() -> tuple[str, str]:
    return ("x-transaction-id", secrets.token_hex(8))


def rate_limited(now: float, seconds: float, told_in: str) -> Reply:
    """A scripted 429 whose wait is given in the window's headers, the day's, `retry-after` (as seconds or as a date),
    nowhere, or as no such time: `milliseconds`."""
    reset = now + seconds
    reply = problems.problem(429)
    match told_in:
        case "window":
            reply.headers = window_headers("x-rate-limit", 100, 0, reset)
        case "day":
            reply.headers = [
                *window_headers("x-rate-limit", 100, 99, now + 1),
                *window_headers("x-user-limit-24hour", 100, 0, reset),
            ]
        case "retry-after":
            reply.headers = [("retry-after", str(math.ceil(seconds)))]
        case "date":
            reply.headers = [
                ("retry-after", format_datetime(datetime.fromtimestamp(math.ceil(reset), UTC), usegmt=True))
            ]
        case "milliseconds":
            reply.headers = window_headers("x-rate-limit", 100, 0, reset * 1000)
        case "nothing":
            pass
        case _:
            raise ValueError(f"told_in is window, day, retry-after, date, milliseconds or nothing, not {told_in!r}")
    reply.headers.append(transaction_header())
    return reply
