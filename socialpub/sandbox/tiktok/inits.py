"""Beginning a share: `video/init`, `inbox/video/init`, `content/init`. None of them can tell a repeat."""

import secrets
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.tiktok import caps, plan, properties
from socialpub.sandbox.tiktok.access import Caller, api_call, json_object
from socialpub.sandbox.tiktok.tasks import DOWNLOADING, FILE_UPLOAD, PHOTO, PULL_FROM_URL, UPLOADING, VIDEO, Task

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

VIDEO_TITLE, PHOTO_TITLE, PHOTO_DESCRIPTION = 2200, 90, 4000
"""UTF-16 code units."""
MOST_PHOTOS = 35
OLDEST_APP_FOR_PHOTO_DRAFTS = (31, 8)
NO_SOURCE = "The request source info is empty or incorrect"
NO_POST_INFO = "The request post info is empty or incorrect"
TRUTHS = (
    "disable_comment", "disable_duet", "disable_stitch", "brand_content_toggle", "brand_organic_toggle", "is_aigc",
    "auto_add_music",
)  # fmt: skip


@api_call("video_init", "video.publish")
def video(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    body = json_object(tiktok, call)
    source = _source(tiktok, body)
    info = _post_info(tiktok, body)
    _refuse_long(tiktok, info, "title", VIDEO_TITLE)
    caps.refuse_direct(tiktok, caller.user, caller.token.client_id, info.get("privacy_level"))
    task = _video_task(tiktok, call, caller, source, info, direct=True)
    caps.posted(tiktok, caller.user, caller.token.client_id)
    return _begin(tiktok, call, task)


@api_call("inbox_init", "video.upload")
def inbox(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    source = _source(tiktok, json_object(tiktok, call))
    caps.refuse_draft(tiktok, caller.user)
    return _begin(tiktok, call, _video_task(tiktok, call, caller, source, {}, direct=False))


@api_call("content_init", "video.publish", "video.upload")
def content(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    body = json_object(tiktok, call)
    mode = body.get("post_mode")
    if body.get("media_type") != "PHOTO" or mode not in ("DIRECT_POST", "MEDIA_UPLOAD"):
        raise _invalid(tiktok, "Invalid media_type or post_mode")
    direct = mode == "DIRECT_POST"
    if ("video.publish" if direct else "video.upload") not in caller.token.scopes:
        raise Refusal(tiktok.refusal_answer("content_init", "scope_not_authorized"))
    source = _source(tiktok, body)
    urls = source.get("photo_images")
    if source["source"] != PULL_FROM_URL or not isinstance(urls, list) or not 1 <= len(urls) <= MOST_PHOTOS:
        raise _invalid(tiktok, NO_SOURCE)
    cover = source.get("photo_cover_index")
    if not isinstance(cover, int) or isinstance(cover, bool) or not 0 <= cover < len(urls):
        raise _invalid(tiktok, NO_SOURCE)
    info = _post_info(tiktok, body) if direct or "post_info" in body else {}
    _refuse_long(tiktok, info, "title", PHOTO_TITLE)
    _refuse_long(tiktok, info, "description", PHOTO_DESCRIPTION)
    if direct:
        caps.refuse_direct(tiktok, caller.user, caller.token.client_id, info.get("privacy_level"))
    else:
        info = {name: info[name] for name in ("title", "description") if name in info}
        if _version(caller.user.app_version) < OLDEST_APP_FOR_PHOTO_DRAFTS:
            raise Refusal(tiktok.refusal_answer("content_init", "app_version_check_failed"))
        caps.refuse_draft(tiktok, caller.user)
    properties.refuse_unverified(tiktok, "content_init", urls)
    task = _task(tiktok, call, caller, f"p_pub_url~v2.{tiktok.world.new_id()}", PHOTO, PULL_FROM_URL, direct)
    task.post_info, task.urls = info | {"photo_cover_index": cover}, tuple(urls)
    if direct:
        caps.posted(tiktok, caller.user, caller.token.client_id)
    return _begin(tiktok, call, task)


def _video_task(
    tiktok: "TikTok",
    call: Call,
    caller: Caller,
    source: dict[str, Any],
    info: dict[str, Any],
    *,
    direct: bool,
) -> Task:
    endpoint, way = ("video_init", "v_pub") if direct else ("inbox_init", "v_inbox")
    if source["source"] == FILE_UPLOAD:
        numbers = [source.get(name) for name in ("video_size", "chunk_size", "total_chunk_count")]
        if not all(_is_number(number) for number in numbers):
            raise _invalid(tiktok, NO_SOURCE)
        size, chunk_size, count = (int(number or 0) for number in numbers)
        if wrong := plan.complaint(size, chunk_size, count, lenient_mib=tiktok.lenient_mib):
            raise _invalid(tiktok, wrong)
    else:
        url = str(source.get("video_url") or "")
        if not url:
            raise _invalid(tiktok, NO_SOURCE)
        properties.refuse_unverified(tiktok, endpoint, [url])
    kind = "file" if source["source"] == FILE_UPLOAD else "url"
    version = "v2-1" if direct else "v2"
    publish_id = f"{way}_{kind}~{version}.{tiktok.world.new_id()}"
    task = _task(tiktok, call, caller, publish_id, VIDEO, source["source"], direct)
    task.post_info = info
    if source["source"] == FILE_UPLOAD:
        task.size, task.chunk_size, task.chunk_count = size, chunk_size, count
        task.upload_token = secrets.token_urlsafe(32)
        task.upload_expires_at = tiktok.world.now().timestamp() + tiktok.upload_seconds
    else:
        task.urls = (url,)
    return task


def _task(
    tiktok: "TikTok",
    call: Call,
    caller: Caller,
    publish_id: str,
    kind: str,
    source: str,
    direct: bool,
) -> Task:
    return Task(
        publish_id, kind, direct, source, caller.user.open_id, caller.user.username, caller.token.client_id, {},
        tiktok.world.now(), tiktok.fate, status=UPLOADING if source == FILE_UPLOAD else DOWNLOADING,
        received_at=call.received_at, received_monotonic=call.received_monotonic,
    )  # fmt: skip


def _begin(tiktok: "TikTok", call: Call, task: Task) -> Answer:
    tiktok.tasks.begin(task)
    tiktok.journal_task(task)
    data = {"publish_id": task.publish_id}
    if task.upload_token:
        number = task.publish_id.rpartition(".")[2]
        data["upload_url"] = f"{call.base_url}/tiktok/upload/video/?upload_id={number}&upload_token={task.upload_token}"
    return tiktok.envelope(200, "ok", "", data)


def _source(tiktok: "TikTok", body: dict[str, Any]) -> dict[str, Any]:
    source = body.get("source_info")
    if not isinstance(source, dict) or source.get("source") not in (FILE_UPLOAD, PULL_FROM_URL):
        raise _invalid(tiktok, NO_SOURCE)
    return source


def _post_info(tiktok: "TikTok", body: dict[str, Any]) -> dict[str, Any]:
    info = body.get("post_info")
    if not isinstance(info, dict) or not info:
        raise _invalid(tiktok, NO_POST_INFO)
    for name, value in info.items():
        fits = True
        if name in TRUTHS:
            fits = isinstance(value, bool)
        elif name in ("title", "description", "privacy_level"):
            fits = isinstance(value, str)
        elif name == "video_cover_timestamp_ms":
            fits = _is_number(value)
        if not fits:
            raise _invalid(tiktok, f"{NO_POST_INFO}: {name}")
    return dict(info)


def _refuse_long(tiktok: "TikTok", info: dict[str, Any], name: str, most: int) -> None:
    if len(info.get(name, "").encode("utf-16-le", "surrogatepass")) // 2 > most:
        raise _invalid(tiktok, f"The {name} is longer than {most} UTF-16 characters")


def _invalid(tiktok: "TikTok", message: str) -> Refusal:
    return Refusal(tiktok.envelope(400, "invalid_params", message))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _version(written: str) -> tuple[int, ...]:
    return tuple(int(part) for part in written.split(".")[:2] if part.isdecimal())
