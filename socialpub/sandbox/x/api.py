"""X's API of accounts and posts: who may call, what a request may contain, create a post, list posts."""

import html
import json
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from annotated_types import Len
from pydantic import Field
from pydantic_core import ErrorDetails

from socialpub.sandbox.messages import Digits, Reply, SandboxRequest, SandboxShape, check_shape, dotted_path, json_reply
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.x.models import XAccount, XMedia, XPost, XSwitches
from socialpub.sandbox.x.network import XSandbox, forbidden, invalid, invalid_fields, type_uri
from socialpub.sandbox.x.text import FORBIDDEN, cashtags, mentions, weighted_length, wrap

SHORT_TEXT = 276
EXCLUSIVE = ("quote_tweet_id", "media")
NOT_PERMITTED = "You are not permitted to perform this action."
NOT_MENTIONED = (
    "Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by the author "
    "of the post you are replying to."
)

XCaller = ApiCaller[XAccount]


# --- query parameters ------------------------------------------------------------------------------------------------

USER_FIELDS = frozenset({
    "created_at", "description", "id", "name", "profile_image_url", "protected", "public_metrics", "subscription_type",
    "username", "verified", "verified_type",
})  # fmt: skip
_POST_FIELDS = frozenset({
    "attachments", "conversation_id", "created_at", "entities", "id", "paid_partnership", "reply_settings", "text",
})  # fmt: skip
POST_FIELDS = {
    "new": _POST_FIELDS | {"note_post"},
    "old": _POST_FIELDS | {"author_id", "edit_history_tweet_ids", "note_tweet", "referenced_tweets"},
}
"""The fields that the sandbox knows, of X's two generations of names. A request uses one of them, never a mixture."""
EXPANSIONS = {"new": frozenset({"referenced_posts"}), "old": frozenset({"referenced_tweets.id"})}
REFERENCES = frozenset({"referenced_posts", "referenced_tweets", "referenced_tweets.id"})
"""What asks for the post that a post replies to."""
PARAMETERS = {"new": "post.fields", "old": "tweet.fields"}


def checked_query(x: XSwitches, request: SandboxRequest, *names: str) -> dict[str, str]:
    """Return the query if it has these parameters only. Raise Refusal."""
    query = request.query()
    for name in query:
        if name not in names:
            message = f"The query parameter [{name}] is not one of {sorted(names)}"
            raise invalid(x, message, **{name: query[name]})
    return query


def post_fields(x: XSwitches, query: dict[str, str]) -> set[str]:
    """Return the fields and expansions of posts that a query asks for. Raise Refusal."""
    asked = [generation for generation, parameter in PARAMETERS.items() if parameter in query]
    if len(asked) > 1:
        raise invalid(x, "tweet.fields and post.fields belong to different documents", **query)
    if x.one_dialect and asked not in ([], [x.dialect]):
        parameter = PARAMETERS[asked[0]]
        raise invalid(x, f"The query parameter [{parameter}] is not known", **{parameter: query[parameter]})
    generations = asked or ([x.dialect] if x.one_dialect else ["new", "old"])
    found = field_list(x, query, "expansions", *(EXPANSIONS[one] for one in generations))
    for generation in asked:
        found |= field_list(x, query, PARAMETERS[generation], POST_FIELDS[generation])
    return found


def field_list(x: XSwitches, query: dict[str, str], name: str, *known: frozenset[str]) -> set[str]:
    """Return the members of a comma list if one of these sets contains all of them. Raise Refusal."""
    if name not in query:
        return set()
    fields = query[name].split(",")
    if len(set(fields)) != len(fields) or not any(one.issuperset(fields) for one in known):
        message = f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(known[0])}"
        raise invalid(x, message, **{name: query[name]})
    return set(fields)


# --- JSON bodies -----------------------------------------------------------------------------------------------------

MESSAGES = {
    "missing": "is missing but it is required",
    "extra_forbidden": "is not defined in the schema and the schema does not allow additional properties",
    "string_type": "string expected",
    "bool_type": "boolean expected",
    "int_type": "integer expected",
    "list_type": "array expected",
    "model_type": "object expected",
    "literal_error": "does not have a value in the enumeration [{expected}]",
    "string_pattern_mismatch": "does not match the regex pattern {pattern}",
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "there must be at least {min_length} items in the array",
    "too_long": "there must be at most {max_length} items in the array",
}


def json_object(x: XSwitches, request: SandboxRequest) -> dict[str, Any]:
    if request.body and request.content_type != "application/json":
        raise invalid(x, "Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        raise invalid(x, "Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid(x, "Request body must be a JSON object.")
    return body


def require_valid(x: XSwitches, shape: type[SandboxShape], body: dict[str, Any]) -> None:
    if found := check_shape(shape, body):
        raise invalid_fields(x, [({dotted_path(one): [str(one["input"])[:200]]}, _message(one)) for one in found])


def _message(finding: ErrorDetails) -> str:
    words = MESSAGES.get(finding["type"], finding["msg"]).format(**finding.get("ctx", {}))
    return f"$.{dotted_path(finding)}: {words}"


# --- the account -----------------------------------------------------------------------------------------------------


@api_call("GET /2/users/me", "tweet.read", "users.read")
def me(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, "user.fields")
    fields = {"id", "name", "username"} | field_list(x, query, "user.fields", USER_FIELDS)
    user = _user_json(x, caller.account, request.base_url)
    return json_reply(200, {"data": {name: user[name] for name in user if name in fields}})


def _user_json(x: XSandbox, account: XAccount, base_url: str) -> dict[str, Any]:
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
            "post_count" if x.dialect == "new" else "tweet_count": len(x.posts_of(account)),
            "listed_count": 0,
        },
        "subscription_type": account.subscription_type,
        "verified": account.verified_type != "none",
        "verified_type": account.verified_type,
    }


# --- create a post ---------------------------------------------------------------------------------------------------


class MediaReferences(SandboxShape):
    media_ids: Annotated[list[Digits], Len(1, 4)]


class ReplyTarget(SandboxShape):
    in_reply_to_tweet_id: Digits


class NewPost(SandboxShape):
    """The fields that the product can send. X has more."""

    text: str = ""
    community_id: Digits = ""
    made_with_ai: bool = False
    media: MediaReferences = Field(default_factory=MediaReferences.model_construct)
    paid_partnership: bool = False
    quote_tweet_id: Digits = ""
    reply: ReplyTarget = Field(default_factory=ReplyTarget.model_construct)
    reply_settings: Literal["following", "mentionedUsers", "subscribers", "verified"] = "verified"
    share_with_followers: bool = False


@api_call("POST /2/tweets", "tweet.read", "tweet.write", "users.read")
def create_post(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    require_valid(x, NewPost, body)
    if x.needs_text and "text" not in body:
        raise invalid(x, "$.text: is missing but it is required", text="")
    if all(name in body for name in EXCLUSIVE):
        message = "You can only provide one of poll or quote_tweet_id or direct_message_deep_link or media or card_uri."
        raise invalid(x, message, **{name: body[name] for name in EXCLUSIVE})
    if "quote_tweet_id" in body:
        raise forbidden(NOT_PERMITTED)
    account, text = caller.account, unicodedata.normalize("NFC", body.get("text", ""))
    _check_text(x, account, text, body)
    reply_to = str(body.get("reply", {}).get("in_reply_to_tweet_id", ""))
    parent = _parent(x, account, reply_to) if reply_to else None
    media = _media(x, account, body)
    if text and x.was_posted_lately(account, text, reply_to):
        raise forbidden("You are not allowed to create a Tweet with duplicate content.")

    post_id = x.new_id()
    page = f"https://x.com/{account.username}/status/{post_id}/{media[0].page_kind}/1" if media else ""
    shown = _as_shown(x, text, account.username, parent)
    shown_text, entities = wrap(shown, page, tuple(item.key for item in media))
    options = {name: value for name, value in body.items() if name not in ("text", "media")}
    x.add_post(
        XPost(
            post_id,
            account.id,
            account.username,
            text,
            x.now(),
            media,
            options,
            caller.token.client_id,
            request.received_monotonic,
            shown_text,
            entities,
            (parent.conversation_id or parent.id) if parent else post_id,
        )
    )
    history = "edit_history_post_ids" if x.dialect == "new" else "edit_history_tweet_ids"
    return json_reply(201, {"data": {"id": post_id, "text": escaped(x, shown_text), history: [post_id]}})


def _check_text(x: XSandbox, account: XAccount, text: str, body: dict[str, Any]) -> None:
    if not text.strip() and "media" not in body:
        raise invalid(x, "text is required when there is no media.", text=text)
    if FORBIDDEN.intersection(text):
        raise invalid(x, "text contains characters that are not allowed.", text=text)
    if weighted_length(text) > account.longest_post:
        if x.too_long_status == 403:
            raise forbidden(NOT_PERMITTED)
        message = "Your Tweet text is too long. For more information see the documentation."
        raise invalid(x, message, text=text)
    if len(cashtags(text)) > 1:
        raise forbidden("Posts are limited to a maximum of one cashtag.")


def _parent(x: XSandbox, account: XAccount, parent_id: str) -> XPost:
    parent = x.find_post(parent_id)
    if parent is None or x.seconds_since(parent.created_at) < x.reply_lag_seconds:
        raise forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
    if parent.account_id != account.id and account.username.lower() not in mentions(parent.text):
        raise forbidden(NOT_MENTIONED)
    return parent


def _media(x: XSandbox, account: XAccount, body: dict[str, Any]) -> tuple[XMedia, ...]:
    """Return the post's media: up to 4 photos, or one GIF, or one video, all usable now by this account."""
    ids: list[str] = body.get("media", {}).get("media_ids", [])
    media = tuple(item for media_id in ids if (item := x.media.usable(media_id, account.id)) is not None)
    mixed = len(media) > 1 and {item.category for item in media} != {"tweet_image"}
    if len(media) < len(ids) or len(set(ids)) < len(ids) or mixed:
        raise invalid_fields(x, [({"media.media_ids": ids}, "Your media IDs are invalid.")])
    return media


def _as_shown(x: XSandbox, text: str, username: str, parent: XPost | None) -> str:
    """Return the text as X shows it, before its links are wrapped."""
    if x.strips_invisible:
        text = "".join(one for one in text if one.isspace() or unicodedata.category(one) not in ("Cc", "Cf"))
    if parent is None or parent.username == username:
        return text
    return text if parent.username.lower() in mentions(text) else f"@{parent.username} {text}".rstrip()


# --- list posts ------------------------------------------------------------------------------------------------------


@api_call("GET /2/users/:id/tweets", "tweet.read", "users.read")
def list_posts(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(
        x, request, "max_results", "pagination_token", "start_time", "exclude", "tweet.fields", "post.fields",
        "expansions",
    )  # fmt: skip
    fields = post_fields(x, query)
    account = x.accounts.get(request.path_params["id"])
    if account is None:
        return _no_such_user(x, request.path_params["id"])
    size = _integer(x, query, "max_results", 10, 5, 100)
    offset = _integer(x, query, "pagination_token", 0, 0, 10**9)
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
    if "expansions" in query and (others := _parents(x, page)):
        name = "posts" if x.dialect == "new" else "tweets"
        answer["includes"] = {name: [post_json(x, one, fields) for one in others]}
    return json_reply(200, answer)


def _chosen(x: XSandbox, posts: Iterable[XPost], query: dict[str, str]) -> Iterable[XPost]:
    """Yield the posts that the query is for, newest first. Times count in whole seconds, as X shows them."""
    start = _time(x, query, "start_time")
    excluded = set(query["exclude"].split(",")) if "exclude" in query else set()
    if not excluded <= {"replies", "retweets"}:
        raise invalid(x, "exclude is `replies`, `retweets` or both", exclude=query["exclude"])
    for post in sorted(posts, key=lambda post: int(post.id), reverse=True):
        if (
            (start is None or int(post.created_at.timestamp()) >= start)
            and not (post.in_reply_to and "replies" in excluded)
            and x.seconds_since(post.created_at) >= x.list_lag_seconds
        ):
            yield post


def _no_such_user(x: XSandbox, user_id: str) -> Reply:
    error = {
        "value": user_id,
        "detail": f"Could not find user with id: [{user_id}].",
        "title": "Not Found Error",
        "resource_type": "user",
        "parameter": "id",
        "resource_id": user_id,
        "type": type_uri(x, "resource-not-found"),
    }
    return json_reply(200, {"errors": [error]})


def _parents(x: XSandbox, page: Iterable[XPost]) -> list[XPost]:
    """Return the posts that the posts of a page reply to, each once."""
    ids = dict.fromkeys(post.in_reply_to for post in page)
    return [parent for one in ids if one and (parent := x.find_post(one)) is not None]


def post_json(x: XSwitches, post: XPost, fields: set[str]) -> dict[str, Any]:
    """Return a post as X's API shows it, in the generation of names that `x.dialect` says."""
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
    if "entities" in fields and (urls := [url for url in post.entities.get("urls", ()) if url["end"] <= len(text)]):
        shown["entities"] = {"urls": urls}
    if fields & {"note_post", "note_tweet"} and long:
        note = {"text": escaped(x, post.shown_text)}
        shown["note_post" if new else "note_tweet"] = note | ({"entities": post.entities} if post.entities else {})
    if fields & REFERENCES and post.in_reply_to:
        shown["referenced_posts" if new else "referenced_tweets"] = [{"type": "replied_to", "id": post.in_reply_to}]
    return {name: value for name, value in shown.items() if name not in x.leaves_out}


def escaped(x: XSwitches, text: str) -> str:
    return html.escape(text, quote=False) if x.escapes_html else text


def _integer(x: XSandbox, query: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    written = query.get(name)
    if written is None:
        return default
    if not (written.isascii() and written.isdecimal()) or not low <= int(written[:25]) <= high:
        raise invalid(x, f"The `{name}` query parameter value [{written}] is not valid", **{name: written})
    return int(written)


def _time(x: XSandbox, query: dict[str, str], name: str) -> int | None:
    """Return the Unix seconds of an RFC 3339 time with an offset."""
    written = query.get(name)
    if written is None:
        return None
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None or "T" not in written:
        message = f"The `{name}` query parameter value [{written}] is not a valid RFC3339 date time"
        raise invalid(x, message, **{name: written})
    return int(instant.timestamp())
