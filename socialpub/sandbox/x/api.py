"""X's API: create and list posts; upload an image in one call, GIFs and videos in segments."""

import json
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import BodyPart, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.x.network import (
    IMAGE,
    PROBLEMS,
    XAccount,
    XMedia,
    XPost,
    XSandbox,
    forbidden,
    invalid,
    invalid_fields,
)

XCaller = ApiCaller[XAccount]


def json_object(request: SandboxRequest) -> dict[str, Any]:
    if request.body and request.content_type != "application/json":
        raise invalid("Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        raise invalid("Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid("Request body must be a JSON object.")
    return body


@api_call("GET /2/users/me", "tweet.read", "users.read")
def me(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    fields = {"id", "name", "username", *request.query().get("user.fields", "").split(",")}
    account = caller.account
    counts = {"followers_count": 0, "following_count": 0, "post_count": len(x.posts_of(account)), "listed_count": 0}
    user = {
        "id": account.id,
        "name": account.name,
        "username": account.username,
        "created_at": "2020-01-01T00:00:00.000Z",
        "description": "",
        "profile_image_url": f"{request.base_url}/x/avatars/{account.picture or account.username}_normal.png",
        "protected": account.protected,
        "public_metrics": counts,
        "subscription_type": account.subscription_type,
        "verified": account.verified_type != "none",
        "verified_type": account.verified_type,
    }
    return json_reply(200, {"data": {name: user[name] for name in user if name in fields}})


# --- create a post ---------------------------------------------------------------------------------------------------


@api_call("POST /2/tweets", "tweet.read", "tweet.write", "users.read")
def create_post(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(request)
    account, text = caller.account, unicodedata.normalize("NFC", body.get("text", ""))
    if not text.strip() and "media" not in body:
        raise invalid("text is required when there is no media.", text=text)
    reply_to = str(body.get("reply", {}).get("in_reply_to_tweet_id", ""))
    parent = x.find_post(reply_to) if reply_to else None
    if reply_to and parent is None:
        raise forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
    media = _media(x, account, body)
    if text and x.was_posted_lately(account, text, reply_to):
        raise forbidden("You are not allowed to create a Tweet with duplicate content.")

    post_id = x.new_id()
    options = {name: value for name, value in body.items() if name not in ("text", "media")}
    conversation_id = parent.conversation_id or parent.id if parent else post_id
    x.add_post(
        XPost(
            post_id, account.id, account.username, text, x.now(), media, options, caller.token.client_id,
            request.received_monotonic, conversation_id,
        )
    )  # fmt: skip
    return json_reply(201, {"data": {"id": post_id, "text": text, "edit_history_post_ids": [post_id]}})


def _media(x: XSandbox, account: XAccount, body: dict[str, Any]) -> tuple[XMedia, ...]:
    """Return the post's media, all usable now by this account."""
    ids: list[str] = body.get("media", {}).get("media_ids", [])
    media = tuple(item for media_id in ids if (item := x.usable_media(media_id, account)) is not None)
    if len(media) < len(ids):
        raise invalid_fields([({"media.media_ids": ids}, "Your media IDs are invalid.")])
    return media


# --- list posts ------------------------------------------------------------------------------------------------------


@api_call("GET /2/users/:id/tweets", "tweet.read", "users.read")
def list_posts(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = request.query()
    account = x.accounts.get(request.path_params["id"])
    if account is None:
        return _no_such_user(request.path_params["id"])
    size, offset = int(query.get("max_results", 10)), int(query.get("pagination_token", 0))
    posts = list(_chosen(x, x.posts_of(account), query))
    page = posts[offset : offset + size]
    answer: dict[str, Any] = {"meta": {"result_count": len(page)}}
    if page:
        answer["meta"] |= {"newest_id": page[0].id, "oldest_id": page[-1].id}
        answer["data"] = [post_json(post) for post in page]
    if offset + size < len(posts):
        answer["meta"]["next_token"] = str(offset + size)
    parents = [x.find_post(post_id) for post_id in dict.fromkeys(post.in_reply_to for post in page) if post_id]
    if "expansions" in query and parents:
        answer["includes"] = {"posts": [post_json(parent) for parent in parents if parent is not None]}
    return json_reply(200, answer)


def _chosen(x: XSandbox, posts: Iterable[XPost], query: dict[str, str]) -> Iterable[XPost]:
    """Yield the posts that the query is for, newest first. Times count in whole seconds, as X shows them."""
    start = int(datetime.fromisoformat(query["start_time"]).timestamp()) if "start_time" in query else 0
    for post in sorted(posts, key=lambda post: int(post.id), reverse=True):
        if (
            int(post.created_at.timestamp()) >= start
            and not (post.in_reply_to and "replies" in query.get("exclude", "").split(","))
            and x.seconds_since(post.created_at) >= x.list_lag_seconds
        ):
            yield post


def _no_such_user(user_id: str) -> Reply:
    error = {
        "value": user_id,
        "detail": f"Could not find user with id: [{user_id}].",
        "title": "Not Found Error",
        "resource_type": "user",
        "parameter": "id",
        "resource_id": user_id,
        "type": f"{PROBLEMS}/resource-not-found",
    }
    return json_reply(200, {"errors": [error]})


def post_json(post: XPost) -> dict[str, Any]:
    """Return a post as X's API shows it, with all fields that the sandbox knows."""
    facts: dict[str, Any] = {
        "id": post.id,
        "text": post.text,
        "edit_history_post_ids": [post.id],
        "created_at": post.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "conversation_id": post.conversation_id,
        "reply_settings": post.reply_settings,
        "paid_partnership": post.paid_partnership,
    }
    if post.media:
        facts["attachments"] = {"media_keys": [item.key for item in post.media]}
    if post.in_reply_to:
        facts["referenced_posts"] = [{"type": "replied_to", "id": post.in_reply_to}]
    return facts


NOT_FOUND = "BadRequest: Not found"


@api_call("POST /2/media/upload", "media.write")
def one_shot(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    part, category = file_and_field(request, "media_category")
    media = x.media.begin(category, part.content_type or "", part.body.size, caller.account.id)
    x.media.append(media, 0, part.data)
    x.media.finalize(media, x.fate())
    if media.state == "failed":
        raise invalid("media type unrecognized.", media=part.name)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/upload/initialize", "media.write")
def initialize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(request)
    media = x.media.begin(body["media_category"], body["media_type"], body["total_bytes"], caller.account.id)
    left = x.media.seconds_left(media)
    return json_reply(200, {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": left}})


@api_call("POST /2/media/upload/:id/append", "media.write")
def append(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    media = own_media(x, request.path_params["id"], caller)
    part, index = file_and_field(request, "segment_index")
    x.media.append(media, int(index), part.data)
    return json_reply(200, {"data": {"expires_at": int(media.expires_at)}})


@api_call("POST /2/media/upload/:id/finalize", "media.write")
def finalize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    json_object(request)
    media = own_media(x, request.path_params["id"], caller)
    if not media.finalized:
        received = sum(media.segments.values())
        if received != media.declared_bytes:
            raise invalid("Segments do not add up to provided total file size.", total_bytes=received)
        x.media.finalize(media, x.fate())
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("GET /2/media/upload", "media.write")
def status(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = request.query()
    media = own_media(x, query.get("media_id", ""), caller)
    if not media.finalized:
        raise invalid(NOT_FOUND, media_id=media.id)
    x.media.poll(media)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/metadata", "media.write")
def metadata(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(request)
    media = own_media(x, body["id"], caller)
    associated: dict[str, Any] = {}
    if "alt_text" in body["metadata"]:
        media.alt_text = body["metadata"]["alt_text"]["text"]
        associated["alt_text"] = {"text": media.alt_text}
    return json_reply(200, {"data": {"id": media.id, "associated_metadata": associated}})


def own_media(x: XSandbox, media_id: str, caller: XCaller) -> XMedia:
    media = x.media.alive(media_id)
    if media is None:
        raise invalid(NOT_FOUND, media_id=media_id)
    if caller.account.id != media.owner_id:
        raise forbidden("You are not allowed to use this media.")
    return media


def _media_json(x: XSandbox, media: XMedia) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": media.id,
        "media_key": media.key,
        "size": media.size,
        "expires_after_secs": x.media.seconds_left(media),
    }
    if media.category != IMAGE:
        facts["video"] = {"video_type": media.mime_type or "video/mp4"}
    elif media.width:
        facts["image"] = {"w": media.width, "h": media.height, "image_type": media.mime_type or "image/jpeg"}
    if media.state:
        info: dict[str, Any] = {"state": media.state}
        if media.state in ("pending", "in_progress"):
            info["check_after_secs"] = x.check_after_seconds
        if media.state == "in_progress":
            info["progress_percent"] = min(99, 100 * media.polls // max(1, x.processing_ticks))
        if media.state == "succeeded":
            info["progress_percent"] = 100
        facts["processing_info"] = info
    return facts


def file_and_field(request: SandboxRequest, name: str) -> tuple[BodyPart, str]:
    """Return the file `media` of a form, and the field beside it. Raise Refusal."""
    try:
        parts = {part.name: part for part in request.parts()}
        return parts["media"], parts[name].text
    except (ValueError, KeyError):
        raise invalid(f"The form must contain the fields media and {name}.") from None


CALLS = (
    SandboxCall("POST", "/2/tweets", "create_post", create_post),
    SandboxCall("GET", "/2/users/me", "me", me),
    SandboxCall("GET", "/2/users/{id}/tweets", "list_posts", list_posts),
    SandboxCall("POST", "/2/media/upload", "upload_one_shot", one_shot),
    SandboxCall("GET", "/2/media/upload", "upload_status", status),
    SandboxCall("POST", "/2/media/upload/initialize", "upload_initialize", initialize),
    SandboxCall("POST", "/2/media/upload/{id}/append", "upload_append", append),
    SandboxCall("POST", "/2/media/upload/{id}/finalize", "upload_finalize", finalize),
    SandboxCall("POST", "/2/media/metadata", "metadata", metadata),
)
