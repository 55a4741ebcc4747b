"""TikTok's API: the account, the beginning of a share, its chunks, its status, and its public videos.

No init detects a repeat.
"""

import re
import secrets
from collections.abc import Iterable
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import KEPT_BYTES, Reply, SandboxRequest, StreamedBody
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.tiktok.network import VIDEOS, TikTokSandbox
from socialpub.sandbox.tiktok.tasks import (
    COMPLETE,
    DOWNLOADING,
    FILE_UPLOAD,
    PHOTO,
    PULL_FROM_URL,
    UPLOADING,
    VIDEO,
    ChunkPut,
    PublishTask,
    TikTokAccount,
)

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


def _fields(tiktok: TikTokSandbox, request: SandboxRequest, allowed: Iterable[str]) -> list[str]:
    """Return the members of the parameter `fields`. Raise Refusal."""
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= set(allowed):
        raise tiktok.invalid("fields is missing or names an unknown field.")
    return fields


def _avatar_url(request: SandboxRequest, account: TikTokAccount) -> str:
    return f"{request.base_url}/tiktok/avatars/{account.picture or account.username}.png"


BANNED = "spam_risk_user_banned_from_posting"
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")


@api_call("video_init", "video.publish")
def init_video(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request)
    info = body.get("post_info", {})
    if code := _direct_code(tiktok, caller, info):
        raise tiktok.refused("video_init", code)
    source = body.get("source_info", {})
    return _begin_video(tiktok, request, caller, source, info, direct=True)


@api_call("inbox_init", "video.upload")
def init_inbox(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    source = json_object(tiktok, request).get("source_info", {})
    if caller.account.banned:
        raise tiktok.refused("inbox_init", BANNED)
    return _begin_video(tiktok, request, caller, source, {}, direct=False)


@api_call("content_init", "video.publish", "video.upload")
def init_content(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request)
    mode = body.get("post_mode")
    if body.get("media_type") != PHOTO or mode not in ("DIRECT_POST", "MEDIA_UPLOAD"):
        raise tiktok.invalid("Invalid media_type or post_mode")
    direct = mode == "DIRECT_POST"
    if not caller.may("video.publish" if direct else "video.upload"):
        raise tiktok.refused("content_init", "scope_not_authorized")
    source, info = body.get("source_info", {}), body.get("post_info") or {}
    code = _direct_code(tiktok, caller, info) if direct else BANNED if caller.account.banned else ""
    if not code and not all(tiktok.may_pull(url) for url in source["photo_images"]):
        code = "url_ownership_unverified"
    if code:
        raise tiktok.refused("content_init", code)
    task = _task(tiktok, caller, f"p_pub_url~v2.{tiktok.new_id()}", PHOTO, direct)
    if not direct:
        info = {name: info[name] for name in ("title", "description") if name in info}
    task.post_info = info | {"photo_cover_index": source["photo_cover_index"]}
    task.urls = tuple(source["photo_images"])
    tiktok.begin(task)
    return tiktok.ok({"publish_id": task.publish_id})


def _direct_code(tiktok: TikTokSandbox, caller: TikTokCaller, info: dict[str, Any]) -> str:
    """Return the code that refuses a direct post, or an empty text."""
    allowed = info.get("privacy_level") in caller.account.privacy_options
    return tiktok.refusal_code(caller) if allowed else "privacy_level_option_mismatch"


def _begin_video(
    tiktok: TikTokSandbox,
    request: SandboxRequest,
    caller: TikTokCaller,
    source: dict[str, Any],
    info: dict[str, Any],
    *,
    direct: bool,
) -> Reply:
    number = tiktok.new_id()
    publish_id = f"v_pub_file~v2-1.{number}" if direct else f"v_inbox_file~v2.{number}"
    task = _task(tiktok, caller, publish_id, VIDEO, direct)
    task.post_info, task.size = dict(info), source["video_size"]
    task.chunk_size, task.chunk_count = source["chunk_size"], source["total_chunk_count"]
    task.upload_token = secrets.token_urlsafe(32)
    task.upload_expires_at = tiktok.timestamp() + tiktok.upload_seconds
    tiktok.begin(task)
    url = f"{request.base_url}/tiktok/upload/video/?upload_id={number}&upload_token={task.upload_token}"
    return tiktok.ok({"publish_id": publish_id, "upload_url": url})


def _task(tiktok: TikTokSandbox, caller: TikTokCaller, publish_id: str, kind: str, direct: bool) -> PublishTask:
    source, status = (FILE_UPLOAD, UPLOADING) if kind == VIDEO else (PULL_FROM_URL, DOWNLOADING)
    return PublishTask(
        publish_id, kind, direct, source, caller.account.open_id, caller.account.username, caller.token.client_id, {},
        tiktok.now(), tiktok.fate_of_next(), status=status,
    )  # fmt: skip


# --- the upload host -------------------------------------------------------------------------------------------------


def open_chunk_sink(tiktok: TikTokSandbox, request: SandboxRequest) -> StreamedBody:
    """Continue the hash of the previous chunks on a copy, because only an accepted chunk counts."""
    task = _addressed_task(tiktok, request)
    if task is None:
        return StreamedBody(keep=False)
    return StreamedBody(keep=task.size <= KEPT_BYTES, digest=task.digest.copy())


def put_chunk(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
    """Accept a whole chunk in its order, or nothing of it. The URL is the credential."""
    task = _addressed_task(tiktok, request)
    if task is None:
        return Reply(404)
    status = _chunk_status(tiktok, request, task, request.sink)
    if status in (206, 201):
        tiktok.tasks.accept_chunk(task, request.sink)
    task.puts.append(ChunkPut(request.headers.get("content-range", ""), request.sink.size, status))
    return Reply(status, headers=[("content-range", f"bytes 0-{task.received}/{task.size}")])


def _chunk_status(tiktok: TikTokSandbox, request: SandboxRequest, task: PublishTask, body: StreamedBody) -> int:
    if tiktok.timestamp() >= task.upload_expires_at:
        return 403
    asked = RANGE.fullmatch(request.headers.get("content-range", ""))
    if asked is None or request.content_type not in VIDEOS or "authorization" in request.headers:
        return 400
    first, last, total = (int(number) for number in asked.groups())
    size = last - first + 1
    if size < 1 or request.headers.get("content-length") != str(size) or body.size != size:
        return 400
    if total != task.size or first != task.received or (first, last) != task.chunk_at(first):
        return 416
    return 201 if last + 1 == total else 206


def _addressed_task(tiktok: TikTokSandbox, request: SandboxRequest) -> PublishTask | None:
    query = request.query()
    task = tiktok.tasks.of_token(query.get("upload_token", ""))
    return task if task is not None and task.publish_id.endswith(f".{query.get('upload_id')}") else None


CALLS = (
    SandboxCall("GET", "/v2/user/info/", "user_info", user_info),
    SandboxCall("POST", "/v2/post/publish/creator_info/query/", "creator_info", creator_info),
    SandboxCall("POST", "/v2/post/publish/status/fetch/", "status_fetch", fetch_status, prepare=pull_first),
    SandboxCall("POST", "/v2/video/query/", "video_query", query_videos),
    SandboxCall("POST", "/v2/post/publish/video/init/", "video_init", init_video),
    SandboxCall("POST", "/v2/post/publish/inbox/video/init/", "inbox_init", init_inbox),
    SandboxCall("POST", "/v2/post/publish/content/init/", "content_init", init_content),
    SandboxCall("PUT", "/upload/video/", "upload_chunk", put_chunk, open_chunk_sink),
)
