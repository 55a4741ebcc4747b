"""`creator_info/query`: what the user may choose, and whether posting is possible at all."""

from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok import posting_caps
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tiktok.user_info import avatar_url


@api_call("creator_info", "video.publish")
def info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    if code := posting_caps.refusal_code(tiktok, caller.account, caller.token.client_id):
        return tiktok.refusal_reply("creator_info", code)
    return tiktok.envelope(
        200,
        "ok",
        "",
        {
            "creator_avatar_url": avatar_url(request, caller.account),
            "creator_username": caller.account.username,
            "creator_nickname": caller.account.display_name,
            "privacy_level_options": posting_caps.privacy_options(tiktok, caller.account, caller.token.client_id),
            "comment_disabled": caller.account.comment_disabled,
            "duet_disabled": caller.account.duet_disabled or caller.account.private,
            "stitch_disabled": caller.account.stitch_disabled or caller.account.private,
            "max_video_post_duration_sec": caller.account.max_duration,
        },
    )
