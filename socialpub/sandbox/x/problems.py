"""X's refusals, in every shape that X is known to use."""

import math
import secrets
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from socialpub.sandbox.messages import Headers, Refusal, Reply, json_reply
from socialpub.sandbox.x.models import XSwitches

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def type_uri(x: XSwitches, slug: str) -> str:
    host = "api.x.com" if x.dialect == "new" else "api.twitter.com"
    return f"https://{host}/2/problems/{slug}"


def problem(status: int, detail: str = "", headers: Headers | None = None) -> Reply:
    """Return the plain shape. Without a detail it repeats the title."""
    title = TITLES.get(status, "Error")
    return json_reply(
        status, {"title": title, "detail": detail or title, "type": "about:blank", "status": status}, headers
    )


def invalid(x: XSwitches, message: str, **parameters: Any) -> Refusal:
    """Return 400 in the validation shape. `parameters`: the names of the fields and their values."""
    return invalid_fields(x, [({name: [str(value)[:200]] for name, value in parameters.items()}, message)])


def invalid_fields(x: XSwitches, errors: list[tuple[dict[str, list[str]], str]]) -> Refusal:
    return Refusal(
        json_reply(
            400,
            {
                "errors": [{"parameters": parameters, "message": message} for parameters, message in errors],
                "title": "Invalid Request",
                "detail": "One or more parameters to your request was invalid.",
                "type": type_uri(x, "invalid-request"),
            },
        )
    )


def forbidden(detail: str = "") -> Refusal:
    return Refusal(problem(403, detail))


def unauthorized() -> Reply:
    return problem(401)


def suspended(x: XSwitches) -> Refusal:
    return Refusal(
        json_reply(
            403,
            {
                "title": "Forbidden",
                "detail": "The user used for authentication is suspended",
                "type": type_uri(x, "user-suspended"),
                "status": 403,
            },
        )
    )


def no_such_user(x: XSwitches, user_id: str) -> dict[str, Any]:
    """Return a member of `errors`."""
    return {
        "value": user_id,
        "detail": f"Could not find user with id: [{user_id}].",
        "title": "Not Found Error",
        "resource_type": "user",
        "parameter": "id",
        "resource_id": user_id,
        "type": type_uri(x, "resource-not-found"),
    }


def credits_depleted(shape: int) -> Reply:
    if shape == 2:
        return json_reply(
            402,
            {
                "detail": "credits depleted",
                "status": 402,
                "title": "Payment Required",
                "type": "https://api.x.com/2/problems/credits-depleted",
            },
        )
    enrolled = 1500000000000000001
    return json_reply(
        402,
        {
            "account_id": enrolled,
            "title": "CreditsDepleted",
            "detail": f"Your enrolled account [{enrolled}] does not have any credits to fulfill this request.",
            "type": "https://api.twitter.com/2/problems/credits",
        },
    )


def oauth(status: int, error: str, description: str) -> Refusal:
    """Return a refusal in the token endpoint's shape."""
    answer = {"error": error, "error_description": description}
    return Refusal(json_reply(status, answer, [("cache-control", "no-store")]))


def window_headers(prefix: str, limit: int, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-limit", str(limit)),
        (f"{prefix}-remaining", str(remaining)),
        (f"{prefix}-reset", str(math.ceil(reset))),
    ]


def transaction_header() -> tuple[str, str]:
    return ("x-transaction-id", secrets.token_hex(8))


def rate_limited(now: float, seconds: float, told_in: str) -> Reply:
    """Return a scripted 429. `told_in` says where its wait is given: in the window's headers, the day's,
    `retry-after` (as seconds or as a date), nowhere, or in `milliseconds`."""
    reset = now + seconds
    reply = problem(429)
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
