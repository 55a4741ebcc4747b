"""What the control API shows of TikTok."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.tiktok.models import PublishTask, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox


def tiktok_view(tiktok: TikTokSandbox) -> dict[str, Any]:
    return {
        "users": [asdict(account) for account in tiktok.accounts.values()],
        "posts": [_post(post) for post in tiktok.posts],
        "tasks": [_task(task) for task in tiktok.tasks.all.values()],
        "properties": [asdict(claim) for claim in tiktok.properties.values()],
    }


def _post(post: TikTokPost) -> dict[str, Any]:
    return {
        "id": post.id,
        "publish_id": post.publish_id,
        "open_id": post.open_id,
        "username": post.username,
        "kind": post.kind,
        "title": post.title,
        "description": post.description,
        "privacy": post.privacy,
        "created_at": post.created_at.isoformat(),
        "options": post.options,
        "client_key": post.client_key,
        "media": [asdict(item) for item in post.media],
    }


def _task(task: PublishTask) -> dict[str, Any]:
    return {
        "publish_id": task.publish_id,
        "kind": task.kind,
        "direct": task.direct,
        "source": task.source,
        "username": task.username,
        "created_at": task.created_at.isoformat(),
        "received_at": task.received_at.isoformat() if task.received_at else None,
        "received_monotonic": task.received_monotonic,
        "status": task.status,
        "fail_reason": task.fail_reason,
        "post_info": task.post_info,
        "size": task.size,
        "chunk_size": task.chunk_size,
        "chunk_count": task.chunk_count,
        "received": task.received,
        "puts": [asdict(put) for put in task.puts],
        "media": [asdict(item) for item in task.media],
        "posts": [post.id for post in task.posts],
    }
