"""`GET /v2/user/info/`."""

from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call
from socialpub.sandbox.tiktok.models import TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

SCOPE_OF = {
    **dict.fromkeys(("open_id", "union_id", "display_name"), "user.info.basic"),
    **dict.fromkeys(("avatar_url", "avatar_url_100", "avatar_large_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
    **dict.fromkeys(("follower_count", "following_count", "likes_count", "video_count"), "user.info.stats"),
}


@api_call("user_info", "user.info.basic")
def info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or any(name not in SCOPE_OF for name in fields):
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    if any(SCOPE_OF[name] not in caller.token.scopes for name in fields):
        return tiktok.envelope(400, "scope_permission_missed", "A field is beyond the granted scopes.")
    account = caller.account
    picture = avatar_url(request, account)
    known = {
        "open_id": account.open_id,
        "union_id": account.union_id,
        "display_name": account.display_name,
        "avatar_url": picture,
        "avatar_url_100": picture,
        "avatar_large_url": picture,
        "username": account.username,
        "bio_description": "",
        "profile_deep_link": f"{request.base_url}/tiktok/@{account.username}",
        "is_verified": False,
    }
    return tiktok.envelope(200, "ok", "", {"user": {name: known.get(name, 0) for name in fields}})


def avatar_url(request: SandboxRequest, account: TikTokAccount) -> str:
    return f"{request.base_url}/tiktok/avatars/{account.picture or account.username}.png"
