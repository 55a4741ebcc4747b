"""Who may call TikTok's API, and who may post how often."""

import functools
from collections.abc import Callable
from typing import Any

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.tiktok.models import ONLY_ME, TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

# MERGED from sandbox/tiktok/access.py: Who may call TikTok's API: bearer, scope, rate, in this order.

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


# MERGED from sandbox/tiktok/posting_caps.py: Who may post, and how often: bans, daily caps, the limits of an app w

DAY = 86400


def refusal_code(tiktok: TikTokSandbox, account: TikTokAccount, client_key: str | None) -> str:
    """The code of what keeps this account from posting now, or nothing."""
    if account.banned:
        return "spam_risk_user_banned_from_posting"
    if tiktok.tasks.direct_posts_today(account.open_id, tiktok.posts_per_day) >= tiktok.posts_per_day:
        return "spam_risk_too_many_posts"
    cap = tiktok.audited_user_cap if tiktok.is_audited(client_key) else tiktok.unaudited_user_cap
    if cap:
        since = tiktok.timestamp() - DAY
        posting = {who for (key, who), at in tiktok.posted_at.items() if key == (client_key or "") and at > since}
        if account.open_id not in posting and len(posting) >= cap:
            return "reached_active_user_cap"
    return ""


def record_posting(tiktok: TikTokSandbox, account: TikTokAccount, client_key: str | None) -> None:
    tiktok.posted_at[(client_key or "", account.open_id)] = tiktok.timestamp()


def privacy_options(tiktok: TikTokSandbox, account: TikTokAccount, client_key: str | None) -> list[str]:
    """The privacy levels that this account may choose through this app."""
    if tiktok.unaudited_options == "self_only" and not tiktok.is_audited(client_key):
        return [ONLY_ME]
    return account.privacy_options


def refuse_direct(tiktok: TikTokSandbox, account: TikTokAccount, client_key: str | None, privacy: str | None) -> None:
    code = "" if privacy in privacy_options(tiktok, account, client_key) else "privacy_level_option_mismatch"
    code = code or refusal_code(tiktok, account, client_key)
    if not code and not tiktok.is_audited(client_key) and not (account.private and privacy == ONLY_ME):
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
