"""Who may call TikTok's API, and who may post how often."""

import functools
from collections.abc import Callable
from typing import Any

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.tiktok.models import ONLY_ME, TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

MINUTE, DAY = 60, 86400
UNAUDITED_USER_CAP = 5
"""Posting users of an unaudited app in 24 hours."""

TikTokCaller = ApiCaller[TikTokAccount]
UserHandler = Callable[[TikTokSandbox, SandboxRequest, TikTokCaller], Reply]


def api_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[[TikTokSandbox, SandboxRequest], Reply]]:
    """Make a handler of `(tiktok, request, caller)` one of `(tiktok, request)`. One of the scopes is enough. `label`
    names its limit in `world.tiktok.limits`. The order is: bearer, scope, rate."""

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
    """Return the body if it is a JSON object declared as such. Raise Refusal."""
    body = request.json_object()
    if body is None:
        raise Refusal(tiktok.envelope(400, "invalid_params", "The request body is not a JSON object."))
    return body


def refusal_code(tiktok: TikTokSandbox, caller: TikTokCaller) -> str:
    """Return the code that keeps this account from posting now, or an empty text."""
    open_id, client_key = caller.account.open_id, caller.token.client_id or ""
    if caller.account.banned:
        return "spam_risk_user_banned_from_posting"
    if tiktok.tasks.direct_posts_today(open_id, tiktok.posts_per_day) >= tiktok.posts_per_day:
        return "spam_risk_too_many_posts"
    cap = tiktok.audited_user_cap if tiktok.audited else UNAUDITED_USER_CAP
    if cap:
        since = tiktok.timestamp() - DAY
        posting = {who for (key, who), at in tiktok.posted_at.items() if key == client_key and at > since}
        if open_id not in posting and len(posting) >= cap:
            return "reached_active_user_cap"
    return ""


def record_posting(tiktok: TikTokSandbox, caller: TikTokCaller) -> None:
    tiktok.posted_at[(caller.token.client_id or "", caller.account.open_id)] = tiktok.timestamp()


def refuse_direct(tiktok: TikTokSandbox, caller: TikTokCaller, privacy: str | None) -> None:
    account = caller.account
    code = "" if privacy in account.privacy_options else "privacy_level_option_mismatch"
    code = code or refusal_code(tiktok, caller)
    if not code and not tiktok.audited and not (account.private and privacy == ONLY_ME):
        code = "unaudited_client_can_only_post_to_private_accounts"
    if code:
        raise Refusal(tiktok.refusal_reply("video_init", code))


def refuse_draft(tiktok: TikTokSandbox, account: TikTokAccount) -> None:
    code = "spam_risk_user_banned_from_posting" if account.banned else ""
    cap = tiktok.pending_shares_per_day
    if not code and tiktok.tasks.pending_today(account.open_id, cap) >= cap:
        code = "spam_risk_too_many_pending_share"
    if code:
        raise Refusal(tiktok.refusal_reply("inbox_init", code))
