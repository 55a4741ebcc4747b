"""Who may call TikTok's API: bearer, scope, rate, in this order."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok
    from socialpub.sandbox.tiktok.users import User
    from socialpub.sandbox.tokens import Token

MINUTE = 60

UserHandler = Callable[["TikTok", Call, "Caller"], Answer]


@dataclass(frozen=True, slots=True)
class Caller:
    token: "Token"
    user: "User"


def api_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[["TikTok", Call], Answer]]:
    """Makes a handler of `(tiktok, call, caller)` one of `(tiktok, call)`. One of the scopes is enough; `label`
    names its limit in `world.tiktok.limits`."""

    def wrap(handler: UserHandler) -> Callable[["TikTok", Call], Answer]:
        @functools.wraps(handler)
        def serve(tiktok: "TikTok", call: Call) -> Answer:
            token = tiktok.tokens.bearer(call.bearer)
            user = tiktok.users.get(token.account_id) if token else None
            if token is None or user is None:
                return tiktok.unauthorized_answer()
            if not set(scopes) & set(token.scopes):
                return tiktok.refusal_answer(label, "scope_not_authorized")
            now, limit = tiktok.world.now().timestamp(), tiktok.limits.get(label, 600)
            if not tiktok.windows.admits((label, token.account_id, token.client_id), limit, MINUTE, now):
                return tiktok.refusal_answer(label, "rate_limit_exceeded")
            return handler(tiktok, call, Caller(token, user))

        return serve

    return wrap


def json_object(tiktok: "TikTok", call: Call) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    try:
        body = call.json() if call.content_type == "application/json" else None
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(tiktok.envelope(400, "invalid_params", "The request body is not a JSON object."))
    return body
