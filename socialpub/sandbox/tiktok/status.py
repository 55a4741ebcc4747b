"""`status/fetch` and `cancel`: how a share goes, and stopping a pull."""

from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal, answer_json
from socialpub.sandbox.tiktok.access import Caller, api_call, json_object
from socialpub.sandbox.tiktok.tasks import COMPLETE, FILE_UPLOAD, PULL_FROM_URL, Task

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok
    from socialpub.sandbox.tiktok.users import User


async def pull_first(tiktok: "TikTok", call: Call) -> None:
    """What the look is about is pulled before it, when nobody has begun to."""
    await tiktok.tasks.pull_for_look(call)


@api_call("status_fetch", "video.upload", "video.publish")
def fetch(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    task = _own(tiktok, call, caller.user)
    tiktok.tasks.look(task)
    data: dict[str, Any] = {"status": task.status}
    if task.fail_reason:
        data["fail_reason"] = task.fail_reason
    if task.status == COMPLETE and tiktok.post_ids != "missing":
        data["publicaly_available_post_id"] = _ids(tiktok, task)
    data["uploaded_bytes" if task.source == FILE_UPLOAD else "downloaded_bytes"] = task.received
    return tiktok.envelope(200, "ok", "", data)


def _ids(tiktok: "TikTok", task: Task) -> list[int] | list[str]:
    public = [post for post in task.posts if post.is_public]
    if tiktok.post_ids == "none" or task.ended_at is None:
        return []
    if (tiktok.world.now() - task.ended_at).total_seconds() < tiktok.moderation_seconds:
        return []
    ids = [int(post.id) for post in public]
    if tiktok.post_ids == "several" and ids:
        ids.append(ids[0] + 1)
    return [str(one) for one in ids] if tiktok.post_ids_as_text else ids


@api_call("cancel", "video.upload", "video.publish")
def cancel(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    task = _own(tiktok, call, caller.user)
    if not task.is_open or task.source != PULL_FROM_URL or task.whole_at is not None:
        return tiktok.refusal_answer("cancel", "publish_not_cancellable")
    tiktok.tasks.cancel(task)
    return answer_json(200, {"error": {"code": "ok", "message": "", "log_id": tiktok.log_id()}})


def _own(tiktok: "TikTok", call: Call, user: "User") -> Task:
    publish_id = json_object(tiktok, call).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is None:
        raise Refusal(tiktok.refusal_answer("status_fetch", "invalid_publish_id"))
    if task.open_id != user.open_id:
        raise Refusal(tiktok.refusal_answer("status_fetch", "token_not_authorized_for_specified_publish_id"))
    return task
