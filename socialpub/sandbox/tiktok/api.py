"""TikTok's API: the account, the status of a share, and its public videos."""

from collections.abc import Iterable
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.tiktok.models import COMPLETE, FILE_UPLOAD, TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

USER_FIELDS = {
    **dict.fromkeys(("open_id", "union_id", "display_name", "avatar_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
}
"""The scope that each field needs."""
VIDEO_FIELDS = ("id", "create_time", "share_url", "title", "video_description")
MAX_VIDEOS = 20

TikTokCaller = ApiCaller[TikTokAccount]


def json_object(tiktok: TikTokSandbox, request: SandboxRequest) -> dict[str, Any]:
    body = request.json_object()
    if body is None:
        raise tiktok.invalid("The request body is not a JSON object.")
    return body


@api_call("user_info", "user.info.basic")
def user_info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    fields = _fields(tiktok, request, USER_FIELDS)
    if any(USER_FIELDS[name] not in caller.token.scopes for name in fields):
        raise tiktok.refused("user_info", "scope_permission_missed")
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
    if code := tiktok.refusal_code(caller):
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
    task = tiktok.tasks.all.get(str((request.json_object() or {}).get("publish_id")))
    if task is not None:
        await tiktok.tasks.pull(task)


@api_call("status_fetch", "video.upload", "video.publish")
def fetch_status(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    task = tiktok.tasks.all.get(str(json_object(tiktok, request).get("publish_id")))
    if task is None:
        return tiktok.refusal_reply("status_fetch", "invalid_publish_id")
    if task.open_id != caller.account.open_id:
        return tiktok.refusal_reply("status_fetch", "token_not_authorized_for_specified_publish_id")
    tiktok.tasks.poll(task)
    data: dict[str, Any] = {"status": task.status}
    if task.fail_reason:
        data["fail_reason"] = task.fail_reason
    if task.status == COMPLETE and task.ended_at is not None:
        passed = tiktok.seconds_since(task.ended_at) >= tiktok.moderation_seconds
        posts = [tiktok.tasks.posts[post_id] for post_id in task.posts]
        data["publicaly_available_post_id"] = [int(post.id) for post in posts if passed and post.is_public]
    data["uploaded_bytes" if task.source == FILE_UPLOAD else "downloaded_bytes"] = task.received
    return tiktok.ok(data)


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


def _fields(tiktok: TikTokSandbox, request: SandboxRequest, known: Iterable[str]) -> list[str]:
    """Return the members of the parameter `fields`. Raise Refusal."""
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= set(known):
        raise tiktok.invalid("fields is missing or names an unknown field.")
    return fields


def _avatar_url(request: SandboxRequest, account: TikTokAccount) -> str:
    return f"{request.base_url}/tiktok/avatars/{account.picture or account.username}.png"


CALLS = (
    SandboxCall("GET", "/v2/user/info/", "user_info", user_info),
    SandboxCall("POST", "/v2/post/publish/creator_info/query/", "creator_info", creator_info),
    SandboxCall("POST", "/v2/post/publish/status/fetch/", "status_fetch", fetch_status, prepare=pull_first),
    SandboxCall("POST", "/v2/video/query/", "video_query", query_videos),
)
