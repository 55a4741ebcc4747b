"""Who may call Pinterest's API: approved app, bearer, rate, scopes, in this order.

Every answer leaves through here and carries the request id and the rate headers.
"""

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from socialpub.sandbox.call import Answer, Call, Headers, Refusal

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Account, Pinterest
    from socialpub.sandbox.tokens import Token

MINUTE, DAY = 60, 86400
Category = Literal["org_read", "org_write"]
UserHandler = Callable[["Pinterest", Call, "Caller"], Answer]


class Caller:
    """Who calls, and in which of the two environments."""

    def __init__(self, token: "Token", account: "Account", sandbox: bool) -> None:
        self.token = token
        self.account = account
        self.sandbox = sandbox

    def may(self, *scopes: str) -> bool:
        return set(scopes) <= set(self.token.scopes)


def in_sandbox(call: Call) -> bool:
    """Pinterest's own sandbox, which knows nothing of production."""
    return call.path.startswith("/sandbox/")


def api_call(category: Category, *scopes: str) -> Callable[[UserHandler], Callable[["Pinterest", Call], Answer]]:
    """Makes a handler of `(pinterest, call, caller)` one of `(pinterest, call)`. All scopes are needed."""

    def wrap(handler: UserHandler) -> Callable[["Pinterest", Call], Answer]:
        @functools.wraps(handler)
        def serve(pinterest: "Pinterest", call: Call) -> Answer:
            headers: Headers = []
            try:
                if pinterest.unapproved:
                    raise Refusal(pinterest.refusal_answer("", "unapproved"))
                caller = _caller(pinterest, call)
                headers = count(pinterest, category, caller.token.client_id, caller.account.id)
                missing = [scope for scope in scopes if scope not in caller.token.scopes]
                if missing:
                    message = f"Your token is missing the required scopes: {', '.join(missing)}"
                    raise Refusal(pinterest.error(403, 3, message))
                answer = handler(pinterest, call, caller)
            except Refusal as refusal:
                answer = refusal.answer
            return with_rates(answer, headers)

        return serve

    return wrap


def _caller(pinterest: "Pinterest", call: Call) -> Caller:
    token = pinterest.tokens.bearer(call.bearer)
    account = pinterest.accounts.get(token.account_id) if token else None
    sandbox = in_sandbox(call)
    if token is None or account is None or pinterest.is_sandbox_token(token) != sandbox:
        raise Refusal(pinterest.unauthorized_answer())
    return Caller(token, account, sandbox)


def count(pinterest: "Pinterest", category: Category, client_id: str | None, account_id: str) -> Headers:
    """One call; the headers that tell of it, or the refusal when it was one too many."""
    pinterest.category_counts[category] += 1
    now, app = pinterest.world.now().timestamp(), client_id or ""
    if pinterest.tier == "trial":
        windows = [
            pinterest.windows.count(("trial", kind, app), pinterest.trial_limits[kind], DAY, now)
            for kind in ("all", category)
        ]
    else:
        windows = [pinterest.windows.count((category, app, account_id), pinterest.limits[category], MINUTE, now)]
    tightest = min(windows, key=lambda window: window.remaining)
    seconds = DAY if pinterest.tier == "trial" else MINUTE
    headers = [
        ("x-ratelimit-limit", f"{tightest.limit}, {tightest.limit};w={seconds}"),
        ("x-ratelimit-remaining", str(tightest.remaining)),
        ("x-ratelimit-reset", str(math.ceil(tightest.reset - now))),
    ]
    if any(window.over for window in windows):
        answer = pinterest.refusal_answer("", "rate_limited")
        raise Refusal(with_rates(answer, headers))
    return headers


def with_rates(answer: Answer, headers: Headers) -> Answer:
    if headers:
        answer.headers = [*(one for one in answer.headers if not one[0].startswith("x-ratelimit")), *headers]
    return answer


def json_object(pinterest: "Pinterest", call: Call) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    try:
        body = call.json() if call.content_type == "application/json" else None
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(pinterest.error(400, 1, "Invalid request: the body is not a JSON object."))
    return body
