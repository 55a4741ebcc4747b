"""`GET /2/users/:id/tweets`: the posts of one account, newest first, in pages."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from socialpub.sandbox.reply import Reply, json_reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.access import XCaller, user_call
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.post_json import post_fields, post_json, referenced_ids
from socialpub.sandbox.x.query import REFERENCES, SHARED, checked_query, expansions

LIST_QUERY = {
    "max_results", "pagination_token", "start_time", "end_time", "since_id", "until_id", "exclude",
    "tweet.fields", "post.fields", *SHARED,
}  # fmt: skip


@user_call("GET /2/users/:id/tweets", "tweet.read", "users.read")
def of_user(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, LIST_QUERY)
    fields = post_fields(x, query)
    account = x.accounts.get(request.path_params["id"])
    if account is None or (account.protected and account.id != caller.account.id):
        return json_reply(200, {"errors": [problems.not_found(x, "user", request.path_params["id"])]})
    size = _integer(x, query, "max_results", 10, 5, 100)
    offset = _integer(x, {"pagination_token": query.get("pagination_token", "0")}, "pagination_token", 0, 0, 10**9)
    posts = list(_chosen(x, x.posts_of(account), query))
    page = posts[offset : offset + size]
    meta: dict[str, Any] = {"result_count": len(page)}
    if page:
        meta |= {"newest_id": page[0].id, "oldest_id": page[-1].id}
    if offset + size < len(posts):
        meta["next_token"] = str(offset + size)
    answer: dict[str, Any] = {"meta": meta}
    if page:
        answer["data"] = [post_json(x, post, fields) for post in page]
    if expansions(x, query) & REFERENCES and (others := list(_referenced(x, page))):
        answer["includes"] = {
            "posts" if x.dialect == "new" else "tweets": [post_json(x, one, fields) for one in others]
        }
    return json_reply(200, answer)


def _chosen(x: XSandbox, posts: Iterable[XPost], query: dict[str, str]) -> Iterable[XPost]:
    """Newest first. Times count in whole seconds, as X shows them."""
    start, end = _time(x, query, "start_time"), _time(x, query, "end_time")
    since = _integer(x, query, "since_id", 0, 0, 10**19)
    until = _integer(x, query, "until_id", 10**19, 0, 10**19)
    excluded = set(query["exclude"].split(",")) if "exclude" in query else set()
    if not excluded <= {"replies", "retweets"}:
        raise problems.invalid(x, "exclude is `replies`, `retweets` or both", exclude=query["exclude"])
    for post in sorted(posts, key=lambda post: int(post.id), reverse=True):
        second = int(post.created_at.timestamp())
        if (
            post.deleted_at is None
            and (start is None or second >= start)
            and (end is None or second < end)
            and since < int(post.id) < until
            and not (post.in_reply_to and "replies" in excluded)
            and x.is_listed(post)
        ):
            yield post


def _referenced(x: XSandbox, page: Iterable[XPost]) -> Iterable[XPost]:
    """What the posts of a page reply to or quote, each once."""
    ids = dict.fromkeys(referenced for post in page for referenced in referenced_ids(post).values())
    return filter(None, map(x.find_post, ids))


def _integer(x: XSandbox, query: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    written = query.get(name)
    if written is None:
        return default
    if not (written.isascii() and written.isdecimal()) or not low <= int(written[:25]) <= high:
        raise problems.invalid(x, f"The `{name}` query parameter value [{written}] is not valid", **{name: written})
    return int(written)


def _time(x: XSandbox, query: dict[str, str], name: str) -> int | None:
    """Whole Unix seconds of an RFC 3339 time with an offset."""
    written = query.get(name)
    if written is None:
        return None
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None or "T" not in written:
        message = f"The `{name}` query parameter value [{written}] is not a valid RFC3339 date time"
        raise problems.invalid(x, message, **{name: written})
    return int(instant.timestamp())
