"""One post: `POST /2/tweets`, reading it back, deleting it."""

import unicodedata

from socialpub.sandbox.reply import Reply, json_reply
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.access import XCaller, user_call
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.post_json import escaped, post_fields, post_json
from socialpub.sandbox.x.post_rules import CREATE, check_media, check_text, refuse_combinations, refuse_duplicate
from socialpub.sandbox.x.query import SHARED, checked_query
from socialpub.sandbox.x.schema import json_object, require_valid
from socialpub.sandbox.x.text import mentions, wrap

NEEDS = ("tweet.read", "tweet.write", "users.read")


@user_call("POST /2/tweets", *NEEDS)
def create(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
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
def read(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
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
def delete(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
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
