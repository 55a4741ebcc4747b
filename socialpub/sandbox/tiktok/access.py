"""Who may call TikTok's API: bearer, scope, rate, in this order."""

import functools
from collections.abc import Callable
from typing import Any

from socialpub.sandbox.oauth import ApiCaller
from socialpub.sandbox.reply import Refusal, Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.models import TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

MINUTE = 60

TikTokCaller = ApiCaller[TikTokAccount]
UserHandler = Callable[[TikTokSandbox, SandboxRequest, TikTokCaller], Reply]


def api_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[[TikTokSandbox, SandboxRequest], Reply]]:
    """Makes a handler of `(tiktok, request, caller)` one of `(tiktok, request)`. One of the scopes is enough; `label`
    names its limit in `world.tiktok.limits`."""

    def wrap(handler: UserHandler) -> Callable[[TikTokSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
            token = tiktok.tokens.bearer(request.bearer)
            account = tiktok.account_of(token) if token else None
            if token is None or account is None:
                return tiktok.unauthorized_reply()
            if not set(scopes) & set(token.scopes):
                return tiktok.refusal_reply(label, "scope_not_authorized")
            limit = tiktok.limits.get(label, 600)
            if not tiktok.windows.admits((label, token.account_id, token.client_id), limit, MINUTE, tiktok.timestamp()):
                return tiktok.refusal_reply(label, "rate_limit_exceeded")
            return handler(tiktok, request, ApiCaller(token, account))

        return checked

    return wrap


def json_object(tiktok: TikTokSandbox, request: SandboxRequest) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    body = request.json_object()
    if body is None:
        raise Refusal(tiktok.envelope(400, "invalid_params", "The request body is not a JSON object."))
    return body
