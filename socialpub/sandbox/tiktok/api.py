"""TikTok's API: who may call, who may post, the account, the status of a share, and its public videos."""

from typing import Any

from socialpub.sandbox.messages import Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.tiktok.models import COMPLETE, FILE_UPLOAD, ONLY_ME, PublishTask, TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

DAY = 86400
UNAUDITED_USER_CAP = 5
"""Posting users of an unaudited app in 24 hours."""

TikTokCaller = ApiCaller[TikTokAccount]


def json_object(tiktok: TikTokSandbox, request: SandboxRequest) -> dict[str, Any]:
    body = request.json_object()
    if body is None:
        raise tiktok.invalid("The request body is not a JSON object.")
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


def refuse_direct(tiktok: TikTokSandbox, caller: TikTokCaller, privacy: str | None) -> None:
    account = caller.account
    code = "" if privacy in account.privacy_options else "privacy_level_option_mismatch"
    code = code or refusal_code(tiktok, caller)
    if not code and not tiktok.audited and not (account.private and privacy == ONLY_ME):
        code = "unaudited_client_can_only_post_to_private_accounts"
    if code:
        raise tiktok.refused("video_init", code)


def refuse_draft(tiktok: TikTokSandbox, account: TikTokAccount) -> None:
    code = "spam_risk_user_banned_from_posting" if account.banned else ""
    cap = tiktok.pending_shares_per_day
    if not code and tiktok.tasks.pending_today(account.open_id, cap) >= cap:
        code = "spam_risk_too_many_pending_share"
    if code:
        raise tiktok.refused("inbox_init", code)


# --- queries ---------------------------------------------------------------------------------------------------------

USER_FIELDS = {
    **dict.fromkeys(("open_id", "union_id", "display_name", "avatar_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
}
"""The scope that each field needs."""
VIDEO_FIELDS = ("id", "create_time", "share_url", "title", "video_description")
MAX_VIDEOS = 20


@api_call("user_info", "user.info.basic")
def user_info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    fields = _fields(tiktok, request, USER_FIELDS)
    if any(USER_FIELDS[name] not in caller.token.scopes for name in fields):
        return tiktok.envelope(400, "scope_permission_missed", "A field is beyond the granted scopes.")
    account = caller.account
    user = {
        "open_id": account.open_id,
        "union_id": account.union_id,
        "display_name": account.display_name,
        "avatar_url": _avatar_url(request, account),
        "username": account.username,
        "bio_description": "",
        "profile_deep_link": f"{request.base_url}/tiktok/@{account.username}",
        "is_verified": False,
    }
    return tiktok.ok({"user": {name: user[name] for name in fields}})


@api_call("creator_info", "video.publish")
def creator_info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    if code := refusal_code(tiktok, caller):
        return tiktok.refusal_reply("creator_info", code)
    account = caller.account
    facts = {
        "creator_avatar_url": _avatar_url(request, account),
        "creator_username": account.username,
        "creator_nickname": account.display_name,
        "privacy_level_options": account.privacy_options,
        "comment_disabled": account.comment_disabled,
        "duet_disabled": account.duet_disabled or account.private,
        "stitch_disabled": account.stitch_disabled or account.private,
        "max_video_post_duration_sec": account.max_duration,
    }
    return tiktok.ok(facts)


async def pull_first(tiktok: TikTokSandbox, request: SandboxRequest) -> None:
    """Pull the photos of a share before its status, unless this has begun."""
    publish_id = (request.json_object() or {}).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is not None:
        await tiktok.tasks.pull(task)


@api_call("status_fetch", "video.upload", "video.publish")
def fetch_status(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    publish_id = json_object(tiktok, request).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is None:
        return tiktok.refusal_reply("status_fetch", "invalid_publish_id")
    if task.open_id != caller.account.open_id:
        return tiktok.refusal_reply("status_fetch", "token_not_authorized_for_specified_publish_id")
    tiktok.tasks.poll(task)
    data: dict[str, Any] = {"status": task.status}
    if task.fail_reason:
        data["fail_reason"] = task.fail_reason
    if task.status == COMPLETE and tiktok.post_ids != "missing":
        data["publicaly_available_post_id"] = _post_ids(tiktok, task)
    data["uploaded_bytes" if task.source == FILE_UPLOAD else "downloaded_bytes"] = tiktok.tasks.counted(task)
    return tiktok.ok(data)


def _post_ids(tiktok: TikTokSandbox, task: PublishTask) -> list[int] | list[str]:
    if tiktok.post_ids == "none" or task.ended_at is None:
        return []
    if tiktok.seconds_since(task.ended_at) < tiktok.moderation_seconds:
        return []
    ids = [int(post.id) for post in task.posts if post.is_public]
    if tiktok.post_ids == "several" and ids:
        ids.append(ids[0] + 1)
    return [str(one) for one in ids] if tiktok.post_ids_as_text else ids


@api_call("video_query", "video.list")
def query_videos(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    """Return the posts with these ids that are public and passed moderation."""
    filters = json_object(tiktok, request).get("filters")
    wanted = filters.get("video_ids") if isinstance(filters, dict) else None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MAX_VIDEOS:
        raise tiktok.invalid("filters.video_ids must be 1 to 20 ids as strings.")
    fields, videos = _fields(tiktok, request, VIDEO_FIELDS), []
    for post in tiktok.posts:
        passed = post.is_public and tiktok.seconds_since(post.created_at) >= tiktok.moderation_seconds
        if post.id in wanted and post.open_id == caller.account.open_id and passed:
            video = {
                "id": post.id,
                "create_time": int(post.created_at.timestamp()),
                "share_url": f"{request.base_url}/tiktok/@{post.username}/{post.kind.lower()}/{post.id}",
                "title": post.title,
                "video_description": post.title,
            }
            videos.append({name: video[name] for name in fields})
    return tiktok.ok({"videos": videos})


def _fields(tiktok: TikTokSandbox, request: SandboxRequest, known: Any) -> list[str]:
    """Return the members of the parameter `fields`. Raise Refusal."""
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= set(known):
        raise tiktok.invalid("fields is missing or names an unknown field.")
    return fields


def _avatar_url(request: SandboxRequest, account: TikTokAccount) -> str:
    return f"{request.base_url}/tiktok/avatars/{account.picture or account.username}.png"
