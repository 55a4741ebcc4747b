"""What the control API shows of X."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.json_facts import json_facts
from socialpub.sandbox.x.network import XSandbox

POST = (
    "id", "account_id", "username", "text", "created_at", "received_at", "received_monotonic", "deleted_at",
    "client_id", "options",
)  # fmt: skip
MEDIA = ("id", "category", "mime_type", "size", "sha256", "alt_text")


def x_view(x: XSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in x.accounts.values()],
        "posts": [
            json_facts(post, POST) | {"media": [json_facts(item, MEDIA) for item in post.media]} for post in x.posts
        ],
    }
