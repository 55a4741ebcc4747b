"""TikTok's queries: the account, what it may post, how a share goes, and its public videos."""

from typing import Any

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.tiktok import access
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call, json_object
from socialpub.sandbox.tiktok.models import COMPLETE, FILE_UPLOAD, PULL_FROM_URL, PublishTask, TikTokAccount, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox

# MERGED from sandbox/tiktok/user_info.py: `GET /v2/user/info/`.

SCOPE_OF = {
    **dict.fromkeys(("open_id", "union_id", "display_name"), "user.info.basic"),
    **dict.fromkeys(("avatar_url", "avatar_url_100", "avatar_large_url"), "user.info.basic"),
    **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
    **dict.fromkeys(("follower_count", "following_count", "likes_count", "video_count"), "user.info.stats"),
}


@api_call("user_info", "user.info.basic")
def user_info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
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


# MERGED from sandbox/tiktok/creator_info.py: `creator_info/query`: what the user may choose, and whether posting i


@api_call("creator_info", "video.publish")
def creator_info(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    if code := access.refusal_code(tiktok, caller.account, caller.token.client_id):
        return tiktok.refusal_reply("creator_info", code)
    return tiktok.envelope(
        200,
        "ok",
        "",
        {
            "creator_avatar_url": avatar_url(request, caller.account),
            "creator_username": caller.account.username,
            "creator_nickname": caller.account.display_name,
            "privacy_level_options": access.privacy_options(tiktok, caller.account, caller.token.client_id),
            "comment_disabled": caller.account.comment_disabled,
            "duet_disabled": caller.account.duet_disabled or caller.account.private,
            "stitch_disabled": caller.account.stitch_disabled or caller.account.private,
            "max_video_post_duration_sec": caller.account.max_duration,
        },
    )


# MERGED from sandbox/tiktok/publish_status.py: `status/fetch` and `cancel`: how a share goes, and stopping a pull.


async def pull_first(tiktok: TikTokSandbox, request: SandboxRequest) -> None:
    """What the status is asked of is pulled before it, when nobody has begun to."""
    publish_id = (request.json_object() or {}).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is not None:
        await tiktok.intake.pull(task)


@api_call("status_fetch", "video.upload", "video.publish")
def fetch_status(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    task = _own(tiktok, request, caller.account)
    tiktok.tasks.poll(task)
    data: dict[str, Any] = {"status": task.status}
    if task.fail_reason:
        data["fail_reason"] = task.fail_reason
    if task.status == COMPLETE and tiktok.post_ids != "missing":
        data["publicaly_available_post_id"] = _ids(tiktok, task)
    data["uploaded_bytes" if task.source == FILE_UPLOAD else "downloaded_bytes"] = tiktok.tasks.counted(task)
    return tiktok.envelope(200, "ok", "", data)


def _ids(tiktok: TikTokSandbox, task: PublishTask) -> list[int] | list[str]:
    public = [post for post in task.posts if post.is_public]
    if tiktok.post_ids == "none" or task.ended_at is None:
        return []
    if tiktok.seconds_since(task.ended_at) < tiktok.moderation_seconds:
        return []
    ids = [int(post.id) for post in public]
    if tiktok.post_ids == "several" and ids:
        ids.append(ids[0] + 1)
    return [str(one) for one in ids] if tiktok.post_ids_as_text else ids


@api_call("cancel", "video.upload", "video.publish")
def cancel(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    task = _own(tiktok, request, caller.account)
    if not task.is_open or task.source != PULL_FROM_URL or task.whole_at is not None:
        return tiktok.refusal_reply("cancel", "publish_not_cancellable")
    tiktok.tasks.cancel(task)
    return json_reply(200, {"error": {"code": "ok", "message": "", "log_id": tiktok.log_id()}})


def _own(tiktok: TikTokSandbox, request: SandboxRequest, account: TikTokAccount) -> PublishTask:
    publish_id = json_object(tiktok, request).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is None:
        raise Refusal(tiktok.refusal_reply("status_fetch", "invalid_publish_id"))
    if task.open_id != account.open_id:
        raise Refusal(tiktok.refusal_reply("status_fetch", "token_not_authorized_for_specified_publish_id"))
    return task


# MERGED from sandbox/tiktok/videos.py: `video/query` and `video/list`: public posts and their links.

FIELDS = frozenset({
    "id", "create_time", "cover_image_url", "share_url", "video_description", "duration", "height", "width", "title",
    "embed_html", "embed_link", "like_count", "comment_count", "share_count", "view_count",
})  # fmt: skip
MOST = 20


@api_call("video_query", "video.list")
def query_videos(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    filters = json_object(tiktok, request).get("filters")
    wanted = filters.get("video_ids") if isinstance(filters, dict) else None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST or not all(isinstance(one, str) for one in wanted):
        return tiktok.envelope(400, "invalid_params", "filters.video_ids must be 1 to 20 ids as strings.")
    found = [post for post in _public(tiktok, caller.account) if post.id in wanted]
    return _reply(tiktok, request, found, {})


@api_call("video_list", "video.list")
def list_videos(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request) if request.body else {}
    size, cursor = body.get("max_count", 10), body.get("cursor")
    if not isinstance(size, int) or not 0 < size <= MOST or not (cursor is None or isinstance(cursor, int)):
        return tiktok.envelope(400, "invalid_params", "max_count is 1 to 20, cursor a number.")
    older = [
        post for post in reversed(_public(tiktok, caller.account)) if cursor is None or _milliseconds(post) < cursor
    ]
    shown = older[:size]
    paging = {"cursor": _milliseconds(shown[-1]) if shown else 0, "has_more": len(older) > size}
    return _reply(tiktok, request, shown, paging)


def _public(tiktok: TikTokSandbox, account: TikTokAccount) -> list[TikTokPost]:
    """Those that moderation has let through, oldest first."""
    now = tiktok.now()
    return [
        post
        for post in tiktok.posts
        if post.open_id == account.open_id
        and post.is_public
        and (now - post.created_at).total_seconds() >= tiktok.moderation_seconds
    ]


def _reply(tiktok: TikTokSandbox, request: SandboxRequest, posts: list[TikTokPost], paging: dict[str, Any]) -> Reply:
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= FIELDS:
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    shown = [_video_json(request, post) for post in posts]
    videos = [{name: one.get(name, 0) for name in fields} for one in shown]
    return tiktok.envelope(200, "ok", "", {"videos": videos, **paging})


def _video_json(request: SandboxRequest, post: TikTokPost) -> dict[str, Any]:
    link = f"{request.base_url}/tiktok/@{post.username}/{post.kind.lower()}/{post.id}"
    return {
        "id": post.id,
        "create_time": int(post.created_at.timestamp()),
        "share_url": link,
        "embed_link": link,
        "embed_html": "",
        "cover_image_url": "",
        "title": post.title,
        "video_description": post.title,
    }


def _milliseconds(post: TikTokPost) -> int:
    return int(post.created_at.timestamp() * 1000)
