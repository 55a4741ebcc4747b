"""The beginning of a share (`video/init`, `inbox/video/init`, `content/init`), and the upload host for its chunks.

No init detects a repeat.
"""

import re
import secrets
from typing import Annotated, Any, Literal

from annotated_types import Len

from socialpub.sandbox.messages import (
    KEPT_BYTES,
    Reply,
    SandboxRequest,
    SandboxShape,
    StreamedBody,
    check_shape,
    dotted_path,
)
from socialpub.sandbox.network import api_call
from socialpub.sandbox.tiktok.api import TikTokCaller, json_object, refuse_direct, refuse_draft
from socialpub.sandbox.tiktok.models import (
    DOWNLOADING,
    FILE_UPLOAD,
    PHOTO,
    PULL_FROM_URL,
    UPLOADING,
    VIDEO,
    ChunkPut,
    PublishTask,
)
from socialpub.sandbox.tiktok.network import TikTokSandbox, may_pull

VIDEO_TITLE, PHOTO_TITLE, PHOTO_DESCRIPTION = 2200, 90, 4000
"""UTF-16 code units."""
OLDEST_APP_FOR_PHOTO_DRAFTS = (31, 8)
NO_SOURCE = "The request source info is empty or incorrect"
NO_POST_INFO = "The request post info is empty or incorrect"
TYPES = ("video/mp4", "video/quicktime", "video/webm")
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
MEGA, MAX_VIDEO_BYTES = 1_000_000, 4 * 1024**3


class ChunkedSource(SandboxShape, extra="ignore"):
    """Of a video in chunks. The product pulls photos only."""

    source: Literal["FILE_UPLOAD"]
    video_size: int
    chunk_size: int
    total_chunk_count: int


class PulledSource(SandboxShape, extra="ignore"):
    source: Literal["PULL_FROM_URL"]
    photo_images: Annotated[list[Any], Len(1, 35)]
    photo_cover_index: int


class PostInfo(SandboxShape, extra="ignore"):
    title: str = ""
    description: str = ""
    privacy_level: str = ""
    disable_comment: bool = False
    disable_duet: bool = False
    disable_stitch: bool = False
    brand_content_toggle: bool = False
    brand_organic_toggle: bool = False
    is_aigc: bool = False
    auto_add_music: bool = False
    video_cover_timestamp_ms: int = 0


# --- init ------------------------------------------------------------------------------------------------------------


@api_call("video_init", "video.publish")
def init_video(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request)
    source, info = _source(tiktok, body, ChunkedSource), _post_info(tiktok, body)
    _refuse_long(tiktok, info, "title", VIDEO_TITLE)
    refuse_direct(tiktok, caller, info.get("privacy_level"))
    return _begin_video(tiktok, request, caller, source, info, direct=True)


@api_call("inbox_init", "video.upload")
def init_inbox(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    source = _source(tiktok, json_object(tiktok, request), ChunkedSource)
    refuse_draft(tiktok, caller.account)
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
    source = _source(tiktok, body, PulledSource)
    urls, cover = source["photo_images"], source["photo_cover_index"]
    if not 0 <= cover < len(urls):
        raise tiktok.invalid(NO_SOURCE)
    info = _post_info(tiktok, body) if direct or "post_info" in body else {}
    _refuse_long(tiktok, info, "title", PHOTO_TITLE)
    _refuse_long(tiktok, info, "description", PHOTO_DESCRIPTION)
    if direct:
        refuse_direct(tiktok, caller, info.get("privacy_level"))
    else:
        info = {name: info[name] for name in ("title", "description") if name in info}
        if tuple(map(int, caller.account.app_version.split("."))) < OLDEST_APP_FOR_PHOTO_DRAFTS:
            raise tiktok.refused("content_init", "app_version_check_failed")
        refuse_draft(tiktok, caller.account)
    if not all(may_pull(tiktok, url) for url in urls):
        raise tiktok.refused("content_init", "url_ownership_unverified")
    task = _task(tiktok, caller, f"p_pub_url~v2.{tiktok.new_id()}", PHOTO, direct)
    task.post_info, task.urls = info | {"photo_cover_index": cover}, tuple(urls)
    tiktok.begin(task)
    return tiktok.ok({"publish_id": task.publish_id})


def _begin_video(
    tiktok: TikTokSandbox,
    request: SandboxRequest,
    caller: TikTokCaller,
    source: dict[str, Any],
    info: dict[str, Any],
    *,
    direct: bool,
) -> Reply:
    size, chunk_size, count = source["video_size"], source["chunk_size"], source["total_chunk_count"]
    if wrong := chunk_plan_complaint(size, chunk_size, count):
        raise tiktok.invalid(wrong)
    number = tiktok.new_id()
    publish_id = f"v_pub_file~v2-1.{number}" if direct else f"v_inbox_file~v2.{number}"
    task = _task(tiktok, caller, publish_id, VIDEO, direct)
    task.post_info, task.size, task.chunk_size, task.chunk_count = info, size, chunk_size, count
    task.upload_token = secrets.token_urlsafe(32)
    task.upload_expires_at = tiktok.timestamp() + tiktok.upload_seconds
    tiktok.begin(task)
    host = f"https://{tiktok.upload_host}" if tiktok.upload_host else request.base_url
    url = f"{host}/tiktok/upload/video/?upload_id={number}&upload_token={task.upload_token}"
    return tiktok.ok({"publish_id": publish_id, "upload_url": url})


def _task(tiktok: TikTokSandbox, caller: TikTokCaller, publish_id: str, kind: str, direct: bool) -> PublishTask:
    source, status = (FILE_UPLOAD, UPLOADING) if kind == VIDEO else (PULL_FROM_URL, DOWNLOADING)
    return PublishTask(
        publish_id, kind, direct, source, caller.account.open_id, caller.account.username, caller.token.client_id, {},
        tiktok.now(), tiktok.fate, status=status,
    )  # fmt: skip


def chunk_plan_complaint(size: int, chunk_size: int, count: int) -> str:
    """Return what is wrong with a plan, or an empty text. `count` is the whole number of chunks in the file, and the
    last one contains the rest."""
    if size <= 0 or chunk_size <= 0 or size > MAX_VIDEO_BYTES:
        return "The chunk size is invalid"
    if not 1 <= count <= 1000 or count != size // chunk_size:
        return "The total chunk count is invalid"
    if count == 1:
        fits = chunk_size == size <= 64 * MEGA
    else:
        last = size - (count - 1) * chunk_size
        fits = 5 * MEGA <= chunk_size <= 64 * MEGA and last <= 128 * MEGA
    return "" if fits else "The chunk size is invalid"


def _source(tiktok: TikTokSandbox, body: dict[str, Any], shape: type[SandboxShape]) -> dict[str, Any]:
    source: dict[str, Any] = body.get("source_info", {})
    if check_shape(shape, source):
        raise tiktok.invalid(NO_SOURCE)
    return source


def _post_info(tiktok: TikTokSandbox, body: dict[str, Any]) -> dict[str, Any]:
    info: dict[str, Any] | None = body.get("post_info")
    if not info:
        raise tiktok.invalid(NO_POST_INFO)
    if found := check_shape(PostInfo, info):
        raise tiktok.invalid(f"{NO_POST_INFO}: {dotted_path(found[0])}")
    return dict(info)


def _refuse_long(tiktok: TikTokSandbox, info: dict[str, Any], name: str, limit: int) -> None:
    if len(info.get(name, "").encode("utf-16-le", "surrogatepass")) // 2 > limit:
        raise tiktok.invalid(f"The {name} is longer than {limit} UTF-16 characters")


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
        status = tiktok.last_chunk_status if status == 201 else status
    task.puts.append(ChunkPut(request.headers.get("content-range", ""), request.sink.size, status))
    reported = max(0, task.received - 1) if tiktok.progress_is_last_index else task.received
    return Reply(status, headers=[("content-range", f"bytes 0-{reported}/{task.size}")])


def _chunk_status(tiktok: TikTokSandbox, request: SandboxRequest, task: PublishTask, body: StreamedBody) -> int:
    if tiktok.timestamp() >= task.upload_expires_at:
        return 403
    asked = RANGE.fullmatch(request.headers.get("content-range", ""))
    if asked is None or request.content_type not in TYPES or "authorization" in request.headers:
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
