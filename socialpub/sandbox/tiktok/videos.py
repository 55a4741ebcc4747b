"""`video/query` and `video/list`: public posts and their links."""

from typing import Any

from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.access import TikTokCaller, api_call, json_object
from socialpub.sandbox.tiktok.models import TikTokAccount, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox

FIELDS = frozenset({
    "id", "create_time", "cover_image_url", "share_url", "video_description", "duration", "height", "width", "title",
    "embed_html", "embed_link", "like_count", "comment_count", "share_count", "view_count",
})  # fmt: skip
MOST = 20


@api_call("video_query", "video.list")
def query(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    filters = json_object(tiktok, request).get("filters")
    wanted = filters.get("video_ids") if isinstance(filters, dict) else None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST or not all(isinstance(one, str) for one in wanted):
        return tiktok.envelope(400, "invalid_params", "filters.video_ids must be 1 to 20 ids as strings.")
    found = [post for post in _public(tiktok, caller.account) if post.id in wanted]
    return _reply(tiktok, request, found, {})


@api_call("video_list", "video.list")
def listing(tiktok: TikTokSandbox, request: SandboxRequest, caller: TikTokCaller) -> Reply:
    body = json_object(tiktok, request) if request.body else {}
    size, cursor = body.get("max_count", 10), body.get("cursor")
    if not isinstance(size, int) or not 0 < size <= MOST or not (cursor is None or isinstance(cursor, int)):
        return tiktok.envelope(400, "invalid_params", "max_count is 1 to 20, cursor a number.")
    older = [
        post for post in reversed(_public(tiktok, caller.account)) if cursor is None or _milliseconds(post) < cursor
    ]
    shown = older[:size]
    paging = {"cursor": _milliseconds(shown[-1]) if shown else 0, "has_more": len(older) > size}
    return _reply(tiktok, request, shown, paging)


def _public(tiktok: TikTokSandbox, account: TikTokAccount) -> list[TikTokPost]:
    """Those that moderation has let through, oldest first."""
    now = tiktok.now()
    return [
        post
        for post in tiktok.posts
        if post.open_id == account.open_id
        and post.is_public
        and (now - post.created_at).total_seconds() >= tiktok.moderation_seconds
    ]


def _reply(tiktok: TikTokSandbox, request: SandboxRequest, posts: list[TikTokPost], paging: dict[str, Any]) -> Reply:
    fields = [name for name in request.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= FIELDS:
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    shown = [_video_json(request, post) for post in posts]
    videos = [{name: one.get(name, 0) for name in fields} for one in shown]
    return tiktok.envelope(200, "ok", "", {"videos": videos, **paging})


def _video_json(request: SandboxRequest, post: TikTokPost) -> dict[str, Any]:
    link = f"{request.base_url}/tiktok/@{post.username}/{post.kind.lower()}/{post.id}"
    return {
        "id": post.id,
        "create_time": int(post.created_at.timestamp()),
        "share_url": link,
        "embed_link": link,
        "embed_html": "",
        "cover_image_url": "",
        "title": post.title,
        "video_description": post.title,
    }


def _milliseconds(post: TikTokPost) -> int:
    return int(post.created_at.timestamp() * 1000)
