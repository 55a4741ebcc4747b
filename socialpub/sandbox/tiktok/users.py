"""`GET /v2/user/info/`."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

SCOPE_OF = {
    **dict.fromkeys(("open_id", "union_id", "display_name"), "user.info.basic"),
    **dict.fromkeys(("avatar_url", "avatar_url_100", "avatar_large_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
    **dict.fromkeys(("follower_count", "following_count", "likes_count", "video_count"), "user.info.stats"),
}


def info(tiktok: "TikTok", call: Call) -> Answer:
    token = tiktok.tokens.bearer(call.bearer)
    user = tiktok.users.get(token.account_id) if token else None
    if token is None or user is None:
        return tiktok.unauthorized_answer()
    if "user.info.basic" not in token.scopes:
        return tiktok.envelope(401, "scope_not_authorized", "The user did not authorize the scope required.")
    fields = [name for name in call.query().get("fields", "").split(",") if name]
    if not fields or any(name not in SCOPE_OF for name in fields):
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    if any(SCOPE_OF[name] not in token.scopes for name in fields):
        return tiktok.envelope(400, "scope_permission_missed", "A field is beyond the granted scopes.")
    avatar = f"{call.base_url}/tiktok/avatars/{user.username}.svg"
    known = {
        "open_id": user.open_id,
        "union_id": user.union_id,
        "display_name": user.display_name,
        "avatar_url": avatar,
        "avatar_url_100": avatar,
        "avatar_large_url": avatar,
        "username": user.username,
        "bio_description": "",
        "profile_deep_link": f"{call.base_url}/tiktok/@{user.username}",
        "is_verified": False,
    }
    return tiktok.envelope(200, "ok", "", {"user": {name: known.get(name, 0) for name in fields}})
