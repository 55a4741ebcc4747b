"""The upload host: chunks in order, each whole or not at all. The URL is the credential."""

import re

from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.streamed_body import KEPT_BYTES, StreamedBody
from socialpub.sandbox.tiktok.models import ChunkPut, PublishTask
from socialpub.sandbox.tiktok.network import TikTokSandbox

TYPES = ("video/mp4", "video/quicktime", "video/webm")
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
GIB = 1024**3


def open_sink(tiktok: TikTokSandbox, request: SandboxRequest) -> StreamedBody:
    """Goes on with the hash of what has come before; only a chunk that is taken is counted in."""
    task = _task(tiktok, request)
    if task is None:
        return StreamedBody(keep=False)
    return StreamedBody(keep=task.size <= KEPT_BYTES, digest=task.digest.copy())


def put(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
    task = _task(tiktok, request)
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


def _task(tiktok: TikTokSandbox, request: SandboxRequest) -> PublishTask | None:
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
