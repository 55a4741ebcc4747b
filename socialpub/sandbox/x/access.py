"""Who may call: bearer, kind of token, account, rate limits, credits, scope, in this order.

Every answer of the API leaves through here and carries the rate headers.
"""

import functools
import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call, Headers, Refusal
from socialpub.sandbox.x import problems

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.x.network import X

WINDOW_SECONDS = 900
DAY_SECONDS = 86400

UserHandler = Callable[["X", Call, "Token"], Answer]


def user_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[["X", Call], Answer]]:
    """Makes a handler of `(x, call, token)` one of `(x, call)`. `label` names its limit in `world.x.limits`."""

    def wrap(handler: UserHandler) -> Callable[["X", Call], Answer]:
        @functools.wraps(handler)
        def serve(x: "X", call: Call) -> Answer:
            headers: Headers = [("x-transaction-id", secrets.token_hex(8))]
            try:
                token = _caller(x, call, label, headers)
                _count(x, token, label, headers)
                if x.credits_depleted:
                    raise Refusal(problems.credits_depleted(x.credits_depleted))
                if not set(scopes) <= set(token.scopes):
                    raise problems.forbidden()
                answer = handler(x, call, token)
            except Refusal as refusal:
                answer = refusal.answer
            answer.headers.extend(headers)
            return answer

        return serve

    return wrap


def _caller(x: "X", call: Call, label: str, headers: Headers) -> "Token":
    token = x.tokens.bearer(call.bearer)
    if token is None:
        limit = x.limits.get(label, 900)
        headers.extend(_window_headers("x-rate-limit", limit, limit, x.world.now().timestamp() + WINDOW_SECONDS))
        raise Refusal(problems.unauthorized())
    if token.app_only:
        _count(x, token, label, headers)
        raise problems.app_only(x)
    account = x.account_of(token)
    if account is not None and account.suspended:
        _count(x, token, label, headers)
        raise problems.suspended(x)
    return token


def _count(x: "X", token: "Token", label: str, headers: Headers) -> None:
    now = x.world.now().timestamp()
    limit = x.limits.get(label, 900)
    window = x.windows.count((label, token.account_id), limit, WINDOW_SECONDS, now)
    headers.extend(_window_headers("x-rate-limit", limit, window.remaining, window.reset))
    over = window.over
    for kind, limits, who in (
        ("user", x.daily_limits, token.account_id),
        ("app", x.app_daily_limits, token.client_id or ""),
    ):
        if label in limits:
            day = x.windows.count((kind, label, who), limits[label], DAY_SECONDS, now)
            headers.extend(_window_headers(f"x-{kind}-limit-24hour", day.limit, day.remaining, day.reset))
            over = over or day.over
    if over:
        raise Refusal(problems.problem(429))


def _window_headers(prefix: str, limit: int, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-limit", str(limit)),
        (f"{prefix}-remaining", str(remaining)),
        (f"{prefix}-reset", str(math.ceil(reset))),
    ]


def rate_limited(x: "X", seconds: float, told_in: str) -> Answer:
    """A scripted 429 whose wait is told in the window's headers, the day's, `retry-after`, or nowhere."""
    reset = x.world.now().timestamp() + seconds
    answer = problems.problem(429)
    match told_in:
        case "window":
            answer.headers = _window_headers("x-rate-limit", 100, 0, reset)
        case "day":
            answer.headers = [
                *_window_headers("x-rate-limit", 100, 99, x.world.now().timestamp() + 1),
                *_window_headers("x-user-limit-24hour", 100, 0, reset),
            ]
        case "retry-after":
            answer.headers = [("retry-after", str(math.ceil(seconds)))]
        case "nothing":
            pass
        case _:
            raise ValueError(f"told_in is window, day, retry-after or nothing, not {told_in!r}")
    answer.headers.append(("x-transaction-id", secrets.token_hex(8)))
    return answer
