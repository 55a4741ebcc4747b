"""Posts and accounts of X's API: create, read, list and delete posts, and read the own account."""

import html
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import XAccount, XMedia, XPost, XSwitches
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.requests import (
    NEW_POST_FIELDS,
    NEW_USER_FIELDS,
    OLD_POST_FIELDS,
    OLD_USER_FIELDS,
    REFERENCES,
    SHARED,
    XCaller,
    array_of,
    boolean,
    checked_query,
    digits,
    expansions,
    field_list,
    json_object,
    number,
    object_of,
    one_of,
    require_valid,
    text,
    user_call,
)
from socialpub.sandbox.x.text import FORBIDDEN, cashtags, links, mentions, weighted_length, wrap

# MERGED from sandbox/x/users.py: `GET /2/users/me`.


@user_call("GET /2/users/me", "tweet.read", "users.read")
def me(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, {"user.fields", "expansions", "tweet.fields", "post.fields"})
    fields = {"id", "name", "username"} | field_list(x, query, "user.fields", NEW_USER_FIELDS, OLD_USER_FIELDS)
    user = _user_json(x, caller.account, request.base_url)
    return json_reply(200, {"data": {name: user[name] for name in user if name in fields}})


def _user_json(x: XSandbox, account: XAccount, base_url: str) -> dict[str, Any]:
    count_name = "post_count" if x.dialect == "new" else "tweet_count"
    return {
        "id": account.id,
        "name": account.name,
        "username": account.username,
        "created_at": "2020-01-01T00:00:00.000Z",
        "description": "",
        "profile_image_url": f"{base_url}/x/avatars/{account.picture or account.username}_normal.png",
        "protected": account.protected,
        "public_metrics": {
            "followers_count": 0,
            "following_count": 0,
            count_name: sum(1 for post in x.posts_of(account) if post.deleted_at is None),
            "listed_count": 0,
        },
        "subscription_type": account.subscription_type,
        "verified": account.verified_type != "none",
        "verified_type": account.verified_type,
    }


# MERGED from sandbox/x/post_rules.py: What `POST /2/tweets` refuses.

REPLY_SETTINGS = one_of("following", "mentionedUsers", "subscribers", "verified")
_SITE = object_of({"url": text()}, "url")
CREATE = object_of(
    {
        "text": text(),
        "card_uri": text(),
        "community_id": digits,
        "direct_message_deep_link": text(),
        "edit_options": object_of({"previous_post_id": digits}, "previous_post_id"),
        "for_super_followers_only": boolean,
        "geo": object_of({"place_id": text()}, "place_id"),
        "made_with_ai": boolean,
        "media": object_of(
            {
                "media_ids": array_of(digits, 1, 4),
                "tagged_user_ids": array_of(digits, 0, 10),
                "preview_media_id": digits,
                "title": text(),
                "embeddable": boolean,
                "call_to_actions": object_of(
                    {
                        "app_install": object_of(
                            {"app_store_id": text(), "ipad_app_store_id": text(), "play_store_id": text()}
                        ),
                        "visit_site": _SITE,
                        "watch_now": _SITE,
                    }
                ),
            },
            "media_ids",
        ),
        "nullcast": boolean,
        "paid_partnership": boolean,
        "poll": object_of(
            {
                "options": array_of(text(1, 25), 2, 4),
                "duration_minutes": number(5, 10080),
                "reply_settings": REPLY_SETTINGS,
            },
            "options",
            "duration_minutes",
        ),
        "quote_tweet_id": digits,
        "reply": object_of(
            {
                "in_reply_to_tweet_id": digits,
                "exclude_reply_user_ids": array_of(digits, 0, 1000),
                "auto_populate_reply_metadata": boolean,
            },
            "in_reply_to_tweet_id",
        ),
        "reply_settings": REPLY_SETTINGS,
        "share_with_followers": boolean,
    }
)
EXCLUSIVE = ("poll", "quote_tweet_id", "direct_message_deep_link", "media", "card_uri")

MEDIA_INVALID = "Your media IDs are invalid."
DUPLICATE = "You are not allowed to create a Tweet with duplicate content."
NOT_PERMITTED = "You are not permitted to perform this action."


def refuse_combinations(x: XSandbox, body: dict[str, Any]) -> None:
    if sum(name in body for name in EXCLUSIVE) > 1:
        raise problems.invalid(
            x,
            "You can only provide one of poll or quote_tweet_id or direct_message_deep_link or media or card_uri.",
            **{name: body[name] for name in EXCLUSIVE if name in body},
        )
    if ("quote_tweet_id" in body and not x.quotes_allowed) or "edit_options" in body:
        raise problems.forbidden(NOT_PERMITTED)


def check_text(x: XSandbox, account: XAccount, written: str, body: dict[str, Any]) -> None:
    """`written` is normalized. Also checks what depends on it: cashtags, links, the post it replies to."""
    if not written.strip() and "media" not in body:
        raise problems.invalid(x, "text is required when there is no media.", text=written)
    if FORBIDDEN.intersection(written):
        raise problems.invalid(x, "text contains characters that are not allowed.", text=written)
    if weighted_length(written) > account.longest_post:
        if x.too_long_status == 403:
            raise problems.forbidden(NOT_PERMITTED)
        raise problems.invalid(
            x, "Your Tweet text is too long. For more information see the documentation.", text=written
        )
    if len(cashtags(written)) > 1:
        raise problems.forbidden("Posts are limited to a maximum of one cashtag.")
    if x.blocked_hosts and any(link.host in x.blocked_hosts for link in links(written)):
        raise problems.forbidden("The Tweet contains an invalid URL.")
    if "reply" in body:
        _check_reply(x, account, body["reply"]["in_reply_to_tweet_id"])


def refuse_duplicate(x: XSandbox, account: XAccount, written: str, body: dict[str, Any]) -> None:
    reply_to = str(body.get("reply", {}).get("in_reply_to_tweet_id", ""))
    if written and x.was_posted_lately(account, written, reply_to):
        raise problems.forbidden(DUPLICATE)


def _check_reply(x: XSandbox, account: XAccount, parent_id: str) -> None:
    parent = x.find_post(parent_id)
    if parent is None:
        raise problems.forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
    if parent.account_id != account.id and account.username.lower() not in mentions(parent.text):
        raise problems.forbidden(
            "Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by "
            "the author of the post you are replying to."
        )


def check_media(x: XSandbox, account: XAccount, body: dict[str, Any]) -> tuple[XMedia, ...]:
    """The media of the post: 1 to 4 photos, or one GIF, or one video, all usable now and by this account."""
    if "media" not in body:
        return ()
    ids: list[str] = body["media"]["media_ids"]
    found = [x.media.usable(media_id, account.id) for media_id in ids]
    media = tuple(item for item in found if item is not None)
    kinds = {item.category for item in media}
    mixed = len(media) > 1 and kinds != {"tweet_image"}
    if len(media) < len(ids) or len(set(ids)) < len(ids) or mixed:
        raise media_invalid(x, ids)
    return media


def media_invalid(x: XSandbox, ids: list[str]) -> Refusal:
    return problems.invalid_fields(x, [({"media.media_ids": list(ids)}, MEDIA_INVALID)])


# MERGED from sandbox/x/post_json.py: A post as X's API shows it, in both generations of names.

SHORT_TEXT = 276


def post_fields(x: XSwitches, query: dict[str, str]) -> set[str]:
    """The fields asked for; what is expanded is shown as well."""
    expanded = expansions(x, query)
    if "post.fields" in query:
        return expanded | field_list(x, query, "post.fields", NEW_POST_FIELDS, NEW_POST_FIELDS)
    return expanded | field_list(x, query, "tweet.fields", OLD_POST_FIELDS, OLD_POST_FIELDS)


def referenced_ids(post: XPost) -> dict[str, str]:
    """By kind of reference."""
    quoted = post.options.get("quote_tweet_id")
    found = {"replied_to": post.in_reply_to, "quoted": str(quoted) if quoted else None}
    return {kind: referenced for kind, referenced in found.items() if referenced}


def post_json(x: XSwitches, post: XPost, fields: set[str]) -> dict[str, Any]:
    new = x.dialect == "new"
    text, long = post.shown_text, weighted_length(post.text) > 280
    if long:
        text = text[:SHORT_TEXT] + "…"
    shown: dict[str, Any] = {
        "id": post.id,
        "text": escaped(x, text),
        "edit_history_post_ids" if new else "edit_history_tweet_ids": [post.id],
    }
    if "created_at" in fields:
        shown["created_at"] = post.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if "author_id" in fields:
        shown["author_id"] = post.account_id
    if "conversation_id" in fields:
        shown["conversation_id"] = post.conversation_id or post.in_reply_to or post.id
    if "reply_settings" in fields:
        shown["reply_settings"] = post.reply_settings
    if "paid_partnership" in fields:
        shown["paid_partnership"] = post.paid_partnership
    if "attachments" in fields and post.media:
        shown["attachments"] = {"media_keys": [item.key for item in post.media]}
    if "entities" in fields and (entities := _within(post.entities, len(text))):
        shown["entities"] = entities
    if fields & {"note_post", "note_tweet"} and long:
        note = {"text": escaped(x, post.shown_text)}
        shown["note_post" if new else "note_tweet"] = note | ({"entities": post.entities} if post.entities else {})
    if fields & REFERENCES and (references := referenced_ids(post)):
        listed = [{"type": kind, "id": referenced} for kind, referenced in references.items()]
        shown["referenced_posts" if new else "referenced_tweets"] = listed
    return {name: value for name, value in shown.items() if name not in x.leaves_out}


def _within(entities: dict[str, list[dict[str, Any]]], length: int) -> dict[str, list[dict[str, Any]]]:
    kept = {kind: [one for one in found if one["end"] <= length] for kind, found in entities.items()}
    return {kind: found for kind, found in kept.items() if found}


def escaped(x: XSwitches, text: str) -> str:
    return html.escape(text, quote=False) if x.escapes_html else text


# MERGED from sandbox/x/posts.py: One post: `POST /2/tweets`, reading it back, deleting it.

NEEDS = ("tweet.read", "tweet.write", "users.read")


@user_call("POST /2/tweets", *NEEDS)
def create_post(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    require_valid(x, CREATE, body)
    if x.needs_text and "text" not in body:
        raise problems.invalid(x, "$.text: is missing but it is required", text="")
    refuse_combinations(x, body)
    account = caller.account
    text = unicodedata.normalize("NFC", body.get("text", ""))
    check_text(x, account, text, body)
    media = check_media(x, account, body)
    now = x.now()
    refuse_duplicate(x, account, text, body)

    post_id = x.new_id()
    page = ""
    if media:
        page = f"https://x.com/{account.username}/status/{post_id}/{media[0].page_kind}/1"
    parent = x.find_post(body["reply"]["in_reply_to_tweet_id"]) if "reply" in body else None
    wrapped = wrap(_as_shown(x, text, account.username, parent), page, tuple(item.key for item in media))
    x.add_post(
        XPost(
            post_id,
            account.id,
            account.username,
            text,
            now,
            media,
            {name: value for name, value in body.items() if name not in ("text", "media")},
            caller.token.client_id,
            request.received_at,
            request.received_monotonic,
            wrapped.text,
            wrapped.entities,
            (parent.conversation_id or parent.id) if parent else post_id,
        )
    )
    history = "edit_history_post_ids" if x.dialect == "new" else "edit_history_tweet_ids"
    return json_reply(201, {"data": {"id": post_id, "text": escaped(x, wrapped.text), history: [post_id]}})


def _as_shown(x: XSandbox, text: str, username: str, parent: XPost | None) -> str:
    """The words that X shows of a text, before their links are wrapped."""
    if x.strips_invisible:
        text = "".join(one for one in text if one.isspace() or unicodedata.category(one) not in ("Cc", "Cf"))
    if parent is None or not x.names_in_replies or parent.username == username:
        return text
    return text if parent.username.lower() in mentions(text) else f"@{parent.username} {text}".rstrip()


@user_call("GET /2/tweets/:id", "tweet.read", "users.read")
def read_post(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, {"tweet.fields", "post.fields", *SHARED})
    fields = post_fields(x, query)
    post = x.find_post(request.path_params["id"])
    if post is None or not _visible(x, post, caller):
        missing = problems.not_found(x, "post", request.path_params["id"])
        if x.missing_post_status == 200:
            return json_reply(200, {"errors": [missing]})
        return json_reply(404, {**missing, "status": 404})
    return json_reply(200, {"data": post_json(x, post, fields)})


@user_call("DELETE /2/tweets/:id", *NEEDS)
def delete_post(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    post = x.find_post(request.path_params["id"])
    if post is None:
        return json_reply(404, {**problems.not_found(x, "post", request.path_params["id"]), "status": 404})
    if post.account_id != caller.account.id:
        raise problems.forbidden("You are not authorized to delete this post.")
    x.delete_post(post)
    return json_reply(200, {"data": {"deleted": True}})


def _visible(x: XSandbox, post: XPost, caller: XCaller) -> bool:
    author = x.accounts.get(post.account_id)
    return author is not None and (not author.protected or author.id == caller.account.id)


# MERGED from sandbox/x/timeline.py: `GET /2/users/:id/tweets`: the posts of one account, newest first, in pages.

LIST_QUERY = {
    "max_results", "pagination_token", "start_time", "end_time", "since_id", "until_id", "exclude",
    "tweet.fields", "post.fields", *SHARED,
}  # fmt: skip


@user_call("GET /2/users/:id/tweets", "tweet.read", "users.read")
def list_posts(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
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
