"""Posts: `POST /2/tweets`, reading them back, deleting them."""

import html
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal, answer_json
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.access import user_call
from socialpub.sandbox.x.bodies import demand, json_object
from socialpub.sandbox.x.create_rules import CREATE, check_media, check_text, refuse_combinations
from socialpub.sandbox.x.fields import NEW_POST_FIELDS, OLD_POST_FIELDS
from socialpub.sandbox.x.query import SHARED, known, listed
from socialpub.sandbox.x.text import weigh, wrap

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.x.media import Media
    from socialpub.sandbox.x.network import X

LIST_QUERY = {
    "max_results", "pagination_token", "start_time", "end_time", "since_id", "until_id", "exclude",
    "tweet.fields", "post.fields", *SHARED,
}  # fmt: skip
SHORT_TEXT = 276
NEEDS = ("tweet.read", "tweet.write", "users.read")


@dataclass(slots=True)
class Post:
    id: str
    account_id: str
    username: str
    text: str
    """As it was sent (NFC)."""
    created_at: datetime
    """By the world's clock."""
    media: tuple["Media", ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """The other fields of the request."""
    client_id: str | None = None
    """The app that made it."""
    received_at: datetime | None = None
    """When the call's first byte arrived, by the machine's clock."""
    received_monotonic: float = 0.0
    shown_text: str = ""
    """As X gives it back, with t.co links."""
    entities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    deleted_at: datetime | None = None

    @property
    def in_reply_to(self) -> str | None:
        reply = self.options.get("reply")
        return str(reply["in_reply_to_tweet_id"]) if reply else None

    @property
    def made_with_ai(self) -> bool:
        return bool(self.options.get("made_with_ai"))

    @property
    def paid_partnership(self) -> bool:
        return bool(self.options.get("paid_partnership"))

    @property
    def reply_settings(self) -> str:
        return str(self.options.get("reply_settings", "everyone"))


@user_call("POST /2/tweets", *NEEDS)
def create(x: "X", call: Call, token: "Token") -> Answer:
    body = json_object(x, call)
    demand(x, CREATE, body)
    refuse_combinations(x, body)
    account = x.account_of(token)
    if account is None:
        raise Refusal(problems.unauthorized())
    text = unicodedata.normalize("NFC", body.get("text", ""))
    check_text(x, account, text, body)
    media = check_media(x, account, body)
    now = x.world.now()
    x.refuse_duplicate(account, text, body, now)

    post_id = x.world.new_id()
    page = ""
    if media:
        page = f"https://x.com/{account.username}/status/{post_id}/{media[0].page_kind}/1"
    wrapped = wrap(text, page, tuple(item.key for item in media))
    x.add_post(
        Post(
            post_id,
            account.id,
            account.username,
            text,
            now,
            media,
            {name: value for name, value in body.items() if name not in ("text", "media")},
            token.client_id,
            call.received_at,
            call.received_monotonic,
            wrapped.text,
            wrapped.entities,
        )
    )
    history = "edit_history_post_ids" if x.dialect == "new" else "edit_history_tweet_ids"
    return answer_json(201, {"data": {"id": post_id, "text": _escaped(x, wrapped.text), history: [post_id]}})


@user_call("GET /2/tweets/:id", "tweet.read", "users.read")
def read(x: "X", call: Call, token: "Token") -> Answer:
    query = known(x, call, {"tweet.fields", "post.fields", *SHARED})
    fields = _fields(x, query)
    post = x.find_post(call.path_params["id"])
    if post is None or not _visible(x, post, token):
        missing = problems.not_found(x, "post", call.path_params["id"])
        if x.missing_post_status == 200:
            return answer_json(200, {"errors": [missing]})
        return answer_json(404, {**missing, "status": 404})
    return answer_json(200, {"data": _show(x, post, fields)})


@user_call("DELETE /2/tweets/:id", *NEEDS)
def delete(x: "X", call: Call, token: "Token") -> Answer:
    post = x.find_post(call.path_params["id"])
    if post is None:
        return answer_json(404, {**problems.not_found(x, "post", call.path_params["id"]), "status": 404})
    if post.account_id != token.account_id:
        raise problems.forbidden("You are not authorized to delete this post.")
    x.delete_post(post)
    return answer_json(200, {"data": {"deleted": True}})


@user_call("GET /2/users/:id/tweets", "tweet.read", "users.read")
def of_user(x: "X", call: Call, token: "Token") -> Answer:
    query = known(x, call, LIST_QUERY)
    fields = _fields(x, query)
    account = x.accounts.get(call.path_params["id"])
    if account is None or (account.protected and account.id != token.account_id):
        return answer_json(200, {"errors": [problems.not_found(x, "user", call.path_params["id"])]})
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
        answer["data"] = [_show(x, post, fields) for post in page]
    return answer_json(200, answer)


def _chosen(x: "X", posts: Iterable[Post], query: dict[str, str]) -> Iterable[Post]:
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
            and x.listed_by_now(post)
        ):
            yield post


def _visible(x: "X", post: Post, token: "Token") -> bool:
    author = x.accounts.get(post.account_id)
    return author is not None and (not author.protected or author.id == token.account_id)


def _fields(x: "X", query: dict[str, str]) -> set[str]:
    if "post.fields" in query:
        return listed(x, query, "post.fields", NEW_POST_FIELDS, NEW_POST_FIELDS)
    return listed(x, query, "tweet.fields", OLD_POST_FIELDS, OLD_POST_FIELDS)


def _show(x: "X", post: Post, fields: set[str]) -> dict[str, Any]:
    new = x.dialect == "new"
    text, long = post.shown_text, weigh(post.text) > 280
    if long:
        text = text[:SHORT_TEXT] + "…"
    shown: dict[str, Any] = {
        "id": post.id,
        "text": _escaped(x, text),
        "edit_history_post_ids" if new else "edit_history_tweet_ids": [post.id],
    }
    if "created_at" in fields:
        shown["created_at"] = post.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if "author_id" in fields:
        shown["author_id"] = post.account_id
    if "conversation_id" in fields:
        shown["conversation_id"] = post.in_reply_to or post.id
    if "reply_settings" in fields:
        shown["reply_settings"] = post.reply_settings
    if "paid_partnership" in fields:
        shown["paid_partnership"] = post.paid_partnership
    if "attachments" in fields and post.media:
        shown["attachments"] = {"media_keys": [item.key for item in post.media]}
    if "entities" in fields and (entities := _within(post.entities, len(text))):
        shown["entities"] = entities
    if fields & {"note_post", "note_tweet"} and long:
        note = {"text": _escaped(x, post.shown_text)}
        shown["note_post" if new else "note_tweet"] = note | ({"entities": post.entities} if post.entities else {})
    if fields & {"referenced_tweets"} and post.in_reply_to:
        reference = [{"type": "replied_to", "id": post.in_reply_to}]
        shown["referenced_posts" if new else "referenced_tweets"] = reference
    return shown


def _within(entities: dict[str, list[dict[str, Any]]], length: int) -> dict[str, list[dict[str, Any]]]:
    kept = {kind: [one for one in found if one["end"] <= length] for kind, found in entities.items()}
    return {kind: found for kind, found in kept.items() if found}


def _escaped(x: "X", text: str) -> str:
    return html.escape(text, quote=False) if x.escapes_html else text


def _integer(x: "X", query: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    written = query.get(name)
    if written is None:
        return default
    if not (written.isascii() and written.isdecimal()) or not low <= int(written[:25]) <= high:
        raise problems.invalid(x, f"The `{name}` query parameter value [{written}] is not valid", **{name: written})
    return int(written)


def _time(x: "X", query: dict[str, str], name: str) -> int | None:
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
