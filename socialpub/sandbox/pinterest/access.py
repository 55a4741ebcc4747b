"""Who may call Pinterest's API: approved app, bearer, rate, scopes, in this order.

Every answer leaves through here and carries the request id and the rate headers.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from socialpub.sandbox.oauth import ApiCaller
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PinterestAccount
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.reply import Headers, Refusal, Reply
from socialpub.sandbox.request import SandboxRequest

MINUTE, DAY = 60, 86400
RateCategory = Literal["org_read", "org_write"]


@dataclass(frozen=True)
class PinterestCaller(ApiCaller[PinterestAccount]):
    sandbox: bool
    """In Pinterest's own sandbox."""


UserHandler = Callable[[PinterestSandbox, SandboxRequest, PinterestCaller], Reply]


def in_sandbox(request: SandboxRequest) -> bool:
    """Pinterest's own sandbox, which knows nothing of production."""
    return request.path.startswith("/sandbox/")


def api_call(
    category: RateCategory, *scopes: str
) -> Callable[[UserHandler], Callable[[PinterestSandbox, SandboxRequest], Reply]]:
    """Makes a handler of `(pinterest, request, caller)` one of `(pinterest, request)`. All scopes are needed."""

    def wrap(handler: UserHandler) -> Callable[[PinterestSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
            headers: Headers = []
            try:
                if pinterest.unapproved:
                    raise replies.refused(pinterest, "unapproved")
                caller = _caller(pinterest, request)
                headers = count(pinterest, category, caller.token.client_id, caller.account.id)
                missing = [scope for scope in scopes if scope not in caller.token.scopes]
                if missing:
                    message = f"Your token is missing the required scopes: {', '.join(missing)}"
                    raise replies.invalid(pinterest, 403, 3, message)
                reply = handler(pinterest, request, caller)
            except Refusal as refusal:
                reply = refusal.reply
            return replies.with_rate_headers(reply, headers) if headers else reply

        return checked

    return wrap


def _caller(pinterest: PinterestSandbox, request: SandboxRequest) -> PinterestCaller:
    token = pinterest.tokens.bearer(request.bearer)
    account = pinterest.account_of(token) if token else None
    sandbox = in_sandbox(request)
    if token is None or account is None or pinterest.is_sandbox_token(token) != sandbox:
        raise replies.refused(pinterest, "authentication_failed")
    return PinterestCaller(token, account, sandbox)


def count(pinterest: PinterestSandbox, category: RateCategory, client_id: str | None, account_id: str) -> Headers:
    """One call; the headers that report it, or the refusal when it was one too many."""
    pinterest.category_counts[category] += 1
    now, app = pinterest.timestamp(), client_id or ""
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
        raise Refusal(replies.with_rate_headers(replies.named_error(pinterest, "rate_limited"), headers))
    return headers


def json_object(pinterest: PinterestSandbox, request: SandboxRequest) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    body = request.json_object()
    if body is None:
        raise replies.invalid(pinterest, 400, 1, "Invalid request: the body is not a JSON object.")
    return body
