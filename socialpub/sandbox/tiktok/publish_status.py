"""`status/fetch` and `cancel`: how a share goes, and stopping a pull."""

from typing import Any

from socialpub.sandbox.reply import Refusal, Reply, json_reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call, json_object
from socialpub.sandbox.tiktok.models import COMPLETE, FILE_UPLOAD, PULL_FROM_URL, PublishTask, TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox


async def pull_first(tiktok: TikTokSandbox, request: SandboxRequest) -> None:
    """What the status is asked of is pulled before it, when nobody has begun to."""
    publish_id = (request.json_object() or {}).get("publish_id")
    task = tiktok.tasks.all.get(publish_id) if isinstance(publish_id, str) else None
    if task is not None:
        await tiktok.intake.pull(task)


@api_call("status_fetch", "video.upload", "video.publish")
def fetch(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
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
