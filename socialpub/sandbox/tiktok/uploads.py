"""The upload host: chunks in order, each whole or not at all. The URL is the credential."""

import re
from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call
from socialpub.sandbox.inflow import KEPT_BYTES, Inflow
from socialpub.sandbox.tiktok.tasks import Put, Task

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

TYPES = ("video/mp4", "video/quicktime", "video/webm")
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")


def open_sink(tiktok: "TikTok", call: Call) -> Inflow:
    """Goes on with the hash of what has come before; only a chunk that is taken is counted in."""
    task = _task(tiktok, call)
    if task is None:
        return Inflow(keep=False)
    return Inflow(keep=task.size <= KEPT_BYTES, digest=task.digest.copy())


def put(tiktok: "TikTok", call: Call) -> Answer:
    task = _task(tiktok, call)
    if task is None:
        return Answer(404)
    status = _judge(tiktok, call, task, call.sink)
    if status in (206, 201):
        tiktok.tasks.take_chunk(task, call.sink)
        status = tiktok.last_chunk_status if status == 201 else status
    task.puts.append(Put(call.headers.get("content-range", ""), call.sink.size, status))
    told = max(0, task.received - 1) if tiktok.progress_is_last_index else task.received
    return Answer(status, headers=[("content-range", f"bytes 0-{told}/{task.size}")])


def _judge(tiktok: "TikTok", call: Call, task: Task, flow: Inflow) -> int:
    if tiktok.world.now().timestamp() >= task.upload_expires_at:
        return 403
    asked = RANGE.fullmatch(call.headers.get("content-range", ""))
    if asked is None or call.content_type not in TYPES or "authorization" in call.headers:
        return 400
    first, last, total = (int(number) for number in asked.groups())
    if (
        not first <= last
        or call.headers.get("content-length") != str(last - first + 1)
        or flow.size != last - first + 1
    ):
        return 400
    if total != task.size or first != task.received or (first, last) != task.chunk_at(first):
        return 416
    return 201 if last + 1 == total else 206


def _task(tiktok: "TikTok", call: Call) -> Task | None:
    query = call.query()
    task = tiktok.tasks.of_token(query.get("upload_token", ""))
    return task if task is not None and task.publish_id.endswith(f".{query.get('upload_id')}") else None
