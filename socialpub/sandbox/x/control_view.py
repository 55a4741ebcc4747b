"""What the control API shows of X."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox

MEDIA_FACTS = ("id", "category", "mime_type", "size", "sha256", "alt_text")


def x_view(x: XSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in x.accounts.values()],
        "posts": [_post(post) for post in x.posts],
    }


def _post(post: XPost) -> dict[str, Any]:
    return {
        "id": post.id,
        "account_id": post.account_id,
        "username": post.username,
        "text": post.text,
        "created_at": post.created_at.isoformat(),
        "received_at": post.received_at.isoformat() if post.received_at else None,
        "received_monotonic": post.received_monotonic,
        "deleted_at": post.deleted_at.isoformat() if post.deleted_at else None,
        "client_id": post.client_id,
        "options": post.options,
        "media": [{name: getattr(item, name) for name in MEDIA_FACTS} for item in post.media],
    }
