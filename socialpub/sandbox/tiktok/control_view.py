"""What the control API shows of TikTok."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.json_facts import json_facts
from socialpub.sandbox.tiktok.network import TikTokSandbox

POST = (
    "id", "publish_id", "open_id", "username", "kind", "title", "description", "privacy", "created_at", "options",
    "client_key", "media",
)  # fmt: skip
TASK = (
    "publish_id", "kind", "direct", "source", "username", "created_at", "received_at", "received_monotonic", "status",
    "fail_reason", "post_info", "size", "chunk_size", "chunk_count", "received", "puts", "media",
)  # fmt: skip


def tiktok_view(tiktok: TikTokSandbox) -> dict[str, Any]:
    return {
        "users": [asdict(account) for account in tiktok.accounts.values()],
        "posts": [json_facts(post, POST) for post in tiktok.posts],
        "tasks": [
            json_facts(task, TASK) | {"posts": [post.id for post in task.posts]} for task in tiktok.tasks.all.values()
        ],
        "properties": [asdict(claim) for claim in tiktok.properties.values()],
    }
