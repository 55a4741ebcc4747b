"""`video/query` and `video/list`: public posts and their links."""

from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call
from socialpub.sandbox.tiktok.access import Caller, api_call, json_object
from socialpub.sandbox.tiktok.tasks import Post

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok
    from socialpub.sandbox.tiktok.users import User

FIELDS = frozenset({
    "id", "create_time", "cover_image_url", "share_url", "video_description", "duration", "height", "width", "title",
    "embed_html", "embed_link", "like_count", "comment_count", "share_count", "view_count",
})  # fmt: skip
MOST = 20


@api_call("video_query", "video.list")
def query(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    filters = json_object(tiktok, call).get("filters")
    wanted = filters.get("video_ids") if isinstance(filters, dict) else None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST or not all(isinstance(one, str) for one in wanted):
        return tiktok.envelope(400, "invalid_params", "filters.video_ids must be 1 to 20 ids as strings.")
    found = [post for post in _public(tiktok, caller.user) if post.id in wanted]
    return _answer(tiktok, call, found, {})


@api_call("video_list", "video.list")
def listing(tiktok: "TikTok", call: Call, caller: Caller) -> Answer:
    body = json_object(tiktok, call) if call.body else {}
    size, cursor = body.get("max_count", 10), body.get("cursor")
    if not isinstance(size, int) or not 0 < size <= MOST or not (cursor is None or isinstance(cursor, int)):
        return tiktok.envelope(400, "invalid_params", "max_count is 1 to 20, cursor a number.")
    older = [post for post in reversed(_public(tiktok, caller.user)) if cursor is None or _milliseconds(post) < cursor]
    shown = older[:size]
    paging = {"cursor": _milliseconds(shown[-1]) if shown else 0, "has_more": len(older) > size}
    return _answer(tiktok, call, shown, paging)


def _public(tiktok: "TikTok", user: "User") -> list[Post]:
    """Those that moderation has let through, oldest first."""
    now = tiktok.world.now()
    return [
        post
        for post in tiktok.posts
        if post.open_id == user.open_id
        and post.is_public
        and (now - post.created_at).total_seconds() >= tiktok.moderation_seconds
    ]


def _answer(tiktok: "TikTok", call: Call, posts: list[Post], paging: dict[str, Any]) -> Answer:
    fields = [name for name in call.query().get("fields", "").split(",") if name]
    if not fields or not set(fields) <= FIELDS:
        return tiktok.envelope(400, "invalid_params", "fields is missing or names an unknown field.")
    shown = [_show(call, post) for post in posts]
    videos = [{name: one.get(name, 0) for name in fields} for one in shown]
    return tiktok.envelope(200, "ok", "", {"videos": videos, **paging})


def _show(call: Call, post: Post) -> dict[str, Any]:
    link = f"{call.base_url}/tiktok/@{post.username}/{post.kind.lower()}/{post.id}"
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


def _milliseconds(post: Post) -> int:
    return int(post.created_at.timestamp() * 1000)
