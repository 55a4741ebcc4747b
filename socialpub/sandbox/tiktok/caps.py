"""Who may post, and how often: bans, daily caps, the limits of an app without an audit."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Refusal
from socialpub.sandbox.tiktok import apps
from socialpub.sandbox.tiktok.users import ONLY_ME

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok
    from socialpub.sandbox.tiktok.users import User

DAY = 86400


def in_the_way(tiktok: "TikTok", user: "User", client_key: str | None) -> str:
    """The code of what keeps this user from posting now, or nothing."""
    if user.banned:
        return "spam_risk_user_banned_from_posting"
    if tiktok.tasks.direct_posts_today(user.open_id, tiktok.posts_per_day) >= tiktok.posts_per_day:
        return "spam_risk_too_many_posts"
    cap = tiktok.audited_user_cap if apps.is_audited(tiktok, client_key) else tiktok.unaudited_user_cap
    if cap:
        since = tiktok.world.now().timestamp() - DAY
        posting = {who for (key, who), at in tiktok.posted_at.items() if key == (client_key or "") and at > since}
        if user.open_id not in posting and len(posting) >= cap:
            return "reached_active_user_cap"
    return ""


def posted(tiktok: "TikTok", user: "User", client_key: str | None) -> None:
    tiktok.posted_at[(client_key or "", user.open_id)] = tiktok.world.now().timestamp()


def options(tiktok: "TikTok", user: "User", client_key: str | None) -> list[str]:
    """The privacy levels that this user may choose through this app."""
    if tiktok.unaudited_options == "self_only" and not apps.is_audited(tiktok, client_key):
        return [ONLY_ME]
    return user.privacy_options


def refuse_direct(tiktok: "TikTok", user: "User", client_key: str | None, privacy: str | None) -> None:
    code = "" if privacy in options(tiktok, user, client_key) else "privacy_level_option_mismatch"
    code = code or in_the_way(tiktok, user, client_key)
    if not code and not apps.is_audited(tiktok, client_key) and not (user.private and privacy == ONLY_ME):
        code = "unaudited_client_can_only_post_to_private_accounts"
    if code:
        raise Refusal(tiktok.refusal_answer("video_init", code))


def refuse_draft(tiktok: "TikTok", user: "User") -> None:
    code = "spam_risk_user_banned_from_posting" if user.banned else ""
    cap = tiktok.pending_shares_per_day
    if not code and tiktok.tasks.pending_today(user.open_id, cap) >= cap:
        code = "spam_risk_too_many_pending_share"
    if code:
        raise Refusal(tiktok.refusal_answer("inbox_init", code))
