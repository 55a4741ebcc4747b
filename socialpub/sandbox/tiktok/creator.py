"""`creator_info/query`: what the user may choose, and whether posting is possible at all."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call
from socialpub.sandbox.tiktok import caps
from socialpub.sandbox.tiktok.access import Caller, api_call
from socialpub.sandbox.tiktok.users import avatar

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok


@api_call("creator_info", "video.publish")
def info(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    if code := caps.in_the_way(tiktok, caller.user, caller.token.client_id):
        return tiktok.refusal_answer("creator_info", code)
    return tiktok.envelope(
        200,
        "ok",
        "",
        {
            "creator_avatar_url": avatar(call, caller.user),
            "creator_username": caller.user.username,
            "creator_nickname": caller.user.display_name,
            "privacy_level_options": caps.options(tiktok, caller.user, caller.token.client_id),
            "comment_disabled": caller.user.comment_disabled,
            "duet_disabled": caller.user.duet_disabled or caller.user.private,
            "stitch_disabled": caller.user.stitch_disabled or caller.user.private,
            "max_video_post_duration_sec": caller.user.max_duration,
        },
    )
