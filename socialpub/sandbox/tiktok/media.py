"""The beginning of a share (`video/init`, `inbox/video/init`, `content/init`), and the upload host for its chunks."""

import re
import secrets
from typing import Any

from socialpub.sandbox.messages import KEPT_BYTES, Refusal, Reply, SandboxRequest, StreamedBody
from socialpub.sandbox.tiktok import access
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call, json_object
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

# MERGED from sandbox/tiktok/chunk_upload.py: The upload host: chunks in order, each whole or not at all. The URL i

TYPES = ("video/mp4", "video/quicktime", "video/webm")
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
GIB = 1024**3


def open_chunk_sink(tiktok: TikTokSandbox, request: SandboxRequest) -> StreamedBody:
    """Goes on with the hash of what has come before; only a chunk that is taken is counted in."""
    task = _addressed_task(tiktok, request)
    if task is None:
        return StreamedBody(keep=False)
    return StreamedBody(keep=task.size <= KEPT_BYTES, digest=task.digest.copy())


def put_chunk(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
    task = _addressed_task(tiktok, request)
    if task is None:
        return Reply(404)
    status = _judge(tiktok, request, task, request.sink)
    if status in (206, 201):
        tiktok.intake.take_chunk(task, request.sink)
        status = tiktok.last_chunk_status if status == 201 else status
    task.puts.append(ChunkPut(request.headers.get("content-range", ""), request.sink.size, status))
    reported = max(0, task.received - 1) if tiktok.progress_is_last_index else task.received
    return Reply(status, headers=[("content-range", f"bytes 0-{reported}/{task.size}")])


def _judge(tiktok: TikTokSandbox, request: SandboxRequest, task: PublishTask, body: StreamedBody) -> int:
    if tiktok.timestamp() >= task.upload_expires_at:
        return 403
    asked = RANGE.fullmatch(request.headers.get("content-range", ""))
    if asked is None or request.content_type not in TYPES or "authorization" in request.headers:
        return 400
    first, last, total = (int(number) for number in asked.groups())
    if (
        not first <= last
        or request.headers.get("content-length") != str(last - first + 1)
        or body.size != last - first + 1
    ):
        return 400
    if total != task.size or first != task.received or (first, last) != task.chunk_at(first):
        return 416
    return 201 if last + 1 == total else 206


def _addressed_task(tiktok: TikTokSandbox, request: SandboxRequest) -> PublishTask | None:
    query = request.query()
    task = tiktok.tasks.of_token(query.get("upload_token", ""))
    return task if task is not None and task.publish_id.endswith(f".{query.get('upload_id')}") else None


def chunk_plan_complaint(size: int, chunk_size: int, count: int, *, lenient_mib: bool) -> str:
    """Nothing when the plan is right. Sizes in bytes; `count` is the whole number of chunks in the file, and the last
    one takes the rest."""
    mega = 1024**2 if lenient_mib else 1_000_000
    if size <= 0 or chunk_size <= 0 or size > 4 * GIB:
        return "The chunk size is invalid"
    if not 1 <= count <= 1000 or count != size // chunk_size:
        return "The total chunk count is invalid"
    if count == 1:
        fits = chunk_size == size <= 64 * mega
    else:
        last = size - (count - 1) * chunk_size
        fits = 5 * mega <= chunk_size <= 64 * mega and last <= 128 * mega
    return "" if fits else "The chunk size is invalid"


# MERGED from sandbox/tiktok/post_init.py: Beginning a share: `video/init`, `inbox/video/init`, `content/init`. Non

VIDEO_TITLE, PHOTO_TITLE, PHOTO_DESCRIPTION = 2200, 90, 4000
"""UTF-16 code units."""
MOST_PHOTOS = 35
OLDEST_APP_FOR_PHOTO_DRAFTS = (31, 8)
NO_SOURCE = "The request source info is empty or incorrect"
NO_POST_INFO = "The request post info is empty or incorrect"
BOOLEANS = (
    "disable_comment", "disable_duet", "disable_stitch", "brand_content_toggle", "brand_organic_toggle", "is_aigc",
    "auto_add_music",
)  # fmt: skip


@api_call("video_init", "video.publish")
def init_video(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request)
    source = _source(tiktok, body)
    info = _post_info(tiktok, body)
    _refuse_long(tiktok, info, "title", VIDEO_TITLE)
    access.refuse_direct(tiktok, caller.account, caller.token.client_id, info.get("privacy_level"))
    task = _video_task(tiktok, request, caller, source, info, direct=True)
    access.record_posting(tiktok, caller.account, caller.token.client_id)
    return _begin(tiktok, request, task)


@api_call("inbox_init", "video.upload")
def init_inbox(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    source = _source(tiktok, json_object(tiktok, request))
    access.refuse_draft(tiktok, caller.account)
    return _begin(tiktok, request, _video_task(tiktok, request, caller, source, {}, direct=False))


@api_call("content_init", "video.publish", "video.upload")
def init_content(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request)
    mode = body.get("post_mode")
    if body.get("media_type") != "PHOTO" or mode not in ("DIRECT_POST", "MEDIA_UPLOAD"):
        raise _invalid(tiktok, "Invalid media_type or post_mode")
    direct = mode == "DIRECT_POST"
    if ("video.publish" if direct else "video.upload") not in caller.token.scopes:
        raise Refusal(tiktok.refusal_reply("content_init", "scope_not_authorized"))
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
        access.refuse_direct(tiktok, caller.account, caller.token.client_id, info.get("privacy_level"))
    else:
        info = {name: info[name] for name in ("title", "description") if name in info}
        if _version(caller.account.app_version) < OLDEST_APP_FOR_PHOTO_DRAFTS:
            raise Refusal(tiktok.refusal_reply("content_init", "app_version_check_failed"))
        access.refuse_draft(tiktok, caller.account)
    _refuse_unverified(tiktok, "content_init", urls)
    task = _task(tiktok, request, caller, f"p_pub_url~v2.{tiktok.new_id()}", PHOTO, PULL_FROM_URL, direct)
    task.post_info, task.urls = info | {"photo_cover_index": cover}, tuple(urls)
    if direct:
        access.record_posting(tiktok, caller.account, caller.token.client_id)
    return _begin(tiktok, request, task)


def _video_task(
    tiktok: TikTokSandbox,
    request: SandboxRequest,
    caller: TikTokCaller,
    source: dict[str, Any],
    info: dict[str, Any],
    *,
    direct: bool,
) -> PublishTask:
    endpoint, way = ("video_init", "v_pub") if direct else ("inbox_init", "v_inbox")
    if source["source"] == FILE_UPLOAD:
        numbers = [source.get(name) for name in ("video_size", "chunk_size", "total_chunk_count")]
        if not all(_is_number(number) for number in numbers):
            raise _invalid(tiktok, NO_SOURCE)
        size, chunk_size, count = (int(number or 0) for number in numbers)
        if wrong := chunk_plan_complaint(size, chunk_size, count, lenient_mib=tiktok.lenient_mib):
            raise _invalid(tiktok, wrong)
    else:
        url = str(source.get("video_url") or "")
        if not url:
            raise _invalid(tiktok, NO_SOURCE)
        _refuse_unverified(tiktok, endpoint, [url])
    kind = "file" if source["source"] == FILE_UPLOAD else "url"
    version = "v2-1" if direct else "v2"
    publish_id = f"{way}_{kind}~{version}.{tiktok.new_id()}"
    task = _task(tiktok, request, caller, publish_id, VIDEO, source["source"], direct)
    task.post_info = info
    if source["source"] == FILE_UPLOAD:
        task.size, task.chunk_size, task.chunk_count = size, chunk_size, count
        task.upload_token = secrets.token_urlsafe(32)
        task.upload_expires_at = tiktok.timestamp() + tiktok.upload_seconds
    else:
        task.urls = (url,)
    return task


def _task(
    tiktok: TikTokSandbox,
    request: SandboxRequest,
    caller: TikTokCaller,
    publish_id: str,
    kind: str,
    source: str,
    direct: bool,
) -> PublishTask:
    return PublishTask(
        publish_id, kind, direct, source, caller.account.open_id, caller.account.username, caller.token.client_id, {},
        tiktok.now(), tiktok.fate, status=UPLOADING if source == FILE_UPLOAD else DOWNLOADING,
        received_at=request.received_at, received_monotonic=request.received_monotonic,
    )  # fmt: skip


def _begin(tiktok: TikTokSandbox, request: SandboxRequest, task: PublishTask) -> Reply:
    tiktok.begin(task)
    data = {"publish_id": task.publish_id}
    if task.upload_token:
        number = task.publish_id.rpartition(".")[2]
        host = f"https://{tiktok.upload_host}" if tiktok.upload_host else request.base_url
        data["upload_url"] = f"{host}/tiktok/upload/video/?upload_id={number}&upload_token={task.upload_token}"
    return tiktok.envelope(200, "ok", "", data)


def _source(tiktok: TikTokSandbox, body: dict[str, Any]) -> dict[str, Any]:
    source = body.get("source_info")
    if not isinstance(source, dict) or source.get("source") not in (FILE_UPLOAD, PULL_FROM_URL):
        raise _invalid(tiktok, NO_SOURCE)
    return source


def _post_info(tiktok: TikTokSandbox, body: dict[str, Any]) -> dict[str, Any]:
    info = body.get("post_info")
    if not isinstance(info, dict) or not info:
        raise _invalid(tiktok, NO_POST_INFO)
    for name, value in info.items():
        fits = True
        if name in BOOLEANS:
            fits = isinstance(value, bool)
        elif name in ("title", "description", "privacy_level"):
            fits = isinstance(value, str)
        elif name == "video_cover_timestamp_ms":
            fits = _is_number(value)
        if not fits:
            raise _invalid(tiktok, f"{NO_POST_INFO}: {name}")
    return dict(info)


def _refuse_unverified(tiktok: TikTokSandbox, endpoint: str, urls: list[object]) -> None:
    if not all(may_pull(tiktok, url) for url in urls):
        raise Refusal(tiktok.refusal_reply(endpoint, "url_ownership_unverified"))


def _refuse_long(tiktok: TikTokSandbox, info: dict[str, Any], name: str, most: int) -> None:
    if len(info.get(name, "").encode("utf-16-le", "surrogatepass")) // 2 > most:
        raise _invalid(tiktok, f"The {name} is longer than {most} UTF-16 characters")


def _invalid(tiktok: TikTokSandbox, message: str) -> Refusal:
    return Refusal(tiktok.envelope(400, "invalid_params", message))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _version(written: str) -> tuple[int, ...]:
    return tuple(int(part) for part in written.split(".")[:2] if part.isdecimal())
