"""Who may call: bearer, kind of token, account, rate limits, credits, scope, in this order.

Every answer of the API leaves through here and carries the rate headers.
"""

import functools
from collections.abc import Callable

from socialpub.sandbox.oauth import ApiCaller
from socialpub.sandbox.reply import Headers, Refusal, Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tokens import Token
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import XAccount
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.rate_headers import transaction_header, window_headers

WINDOW_SECONDS = 900
DAY_SECONDS = 86400

XCaller = ApiCaller[XAccount]
UserHandler = Callable[[XSandbox, SandboxRequest, XCaller], Reply]


def user_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[[XSandbox, SandboxRequest], Reply]]:
    """Makes a handler of `(x, request, caller)` one of `(x, request)`. `label` names its limit in `world.x.limits`."""

    def wrap(handler: UserHandler) -> Callable[[XSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(x: XSandbox, request: SandboxRequest) -> Reply:
            headers: Headers = [transaction_header()]
            try:
                caller = _caller(x, request, label, headers)
                if x.credits_depleted:
                    raise Refusal(problems.credits_depleted(x.credits_depleted))
                if not caller.may(*scopes):
                    raise problems.forbidden()
                reply = handler(x, request, caller)
            except Refusal as refusal:
                reply = refusal.reply
            reply.headers.extend(headers)
            return reply

        return checked

    return wrap


def _caller(x: XSandbox, request: SandboxRequest, label: str, headers: Headers) -> XCaller:
    token = x.tokens.bearer(request.bearer)
    if token is None:
        limit = x.limits.get(label, 900)
        headers.extend(window_headers("x-rate-limit", limit, limit, x.timestamp() + WINDOW_SECONDS))
        raise Refusal(problems.unauthorized())
    _count(x, token, label, headers)
    if token.app_only:
        raise problems.app_only(x)
    account = x.account_of(token)
    if account is None:
        raise Refusal(problems.unauthorized())
    if account.suspended:
        raise problems.suspended(x)
    return ApiCaller(token, account)


def _count(x: XSandbox, token: Token, label: str, headers: Headers) -> None:
    now = x.timestamp()
    limit = x.limits.get(label, 900)
    window = x.windows.count((label, token.account_id), limit, WINDOW_SECONDS, now)
    headers.extend(window_headers("x-rate-limit", limit, window.remaining, window.reset))
    over = window.over
    for kind, limits, who in (
        ("user", x.daily_limits, token.account_id),
        ("app", x.app_daily_limits, token.client_id or ""),
    ):
        if label in limits:
            day = x.windows.count((kind, label, who), limits[label], DAY_SECONDS, now)
            headers.extend(window_headers(f"x-{kind}-limit-24hour", day.limit, day.remaining, day.reset))
            over = over or day.over
    if over:
        raise Refusal(problems.problem(429))
