"""TikTok's users, and `GET /v2/user/info/`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call
from socialpub.sandbox.tiktok.access import Caller, api_call

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

SCOPE_OF = {
    **dict.fromkeys(("open_id", "union_id", "display_name"), "user.info.basic"),
    **dict.fromkeys(("avatar_url", "avatar_url_100", "avatar_large_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
    **dict.fromkeys(("follower_count", "following_count", "likes_count", "video_count"), "user.info.stats"),
}
PUBLIC, FOLLOWERS, FRIENDS, ONLY_ME = (
    "PUBLIC_TO_EVERYONE",
    "FOLLOWER_OF_CREATOR",
    "MUTUAL_FOLLOW_FRIENDS",
    "SELF_ONLY",
)


@dataclass(slots=True)
class User:
    open_id: str
    union_id: str
    username: str
    display_name: str
    private: bool = False
    comment_disabled: bool = False
    duet_disabled: bool = False
    stitch_disabled: bool = False
    max_duration: int = 600
    """Seconds."""
    banned: bool = False
    app_version: str = "36.1.0"
    """Of the TikTok app on the user's phone."""

    @property
    def privacy_options(self) -> list[str]:
        return [FOLLOWERS if self.private else PUBLIC, FRIENDS, ONLY_ME]


@api_call("user_info", "user.info.basic")
def info(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    fields = [name for name in call.query().get("fields", "").split(",") if name]
    if not fields or any(name not in SCOPE_OF for name in fields):
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    if any(SCOPE_OF[name] not in caller.token.scopes for name in fields):
        return tiktok.envelope(400, "scope_permission_missed", "A field is beyond the granted scopes.")
    picture = avatar(call, caller.user)
    known = {
        "open_id": caller.user.open_id,
        "union_id": caller.user.union_id,
        "display_name": caller.user.display_name,
        "avatar_url": picture,
        "avatar_url_100": picture,
        "avatar_large_url": picture,
        "username": caller.user.username,
        "bio_description": "",
        "profile_deep_link": f"{call.base_url}/tiktok/@{caller.user.username}",
        "is_verified": False,
    }
    return tiktok.envelope(200, "ok", "", {"user": {name: known.get(name, 0) for name in fields}})


def avatar(call: Call, user: User) -> str:
    return f"{call.base_url}/tiktok/avatars/{user.username}.svg"
