"""X's API: OAuth; create and list posts; upload an image in one call, GIFs and videos in segments."""

import unicodedata
from datetime import UTC, datetime
from typing import Any, ClassVar

from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall, api_call
from socialpub.sandbox.x.network import (
    FAILED,
    IMAGE,
    IN_PROGRESS,
    PENDING,
    PROBLEMS,
    SUCCEEDED,
    XAccount,
    XMedia,
    XNetwork,
    XPost,
    forbidden,
    invalid,
    invalid_fields,
)

SCOPES = (
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
)  # fmt: skip
OAUTH_REFUSALS = {
    "form": "The body must be a form.",
    "grant_type": "Bad grant_type.",
    "missing": "Missing required parameter [{}].",
    "code": "Value passed for the authorization code was invalid.",
    "redirect_uri": "Value passed for the redirect uri did not match the uri of the authorization code.",
    "verifier": "Value passed for the code verifier did not match the code challenge.",
    "refresh_token": "Value passed for the token was invalid.",
}
NOT_FOUND = "BadRequest: Not found"


class XSandbox(XNetwork):
    oauth_paths = ("/i/oauth2/authorize", "/2/oauth2/token", "/2/oauth2/revoke")
    scopes: ClassVar = dict.fromkeys(SCOPES, "")
    # Encoded as `%20`, or as the `+` of X's own library.
    scope_separator = " "
    code_seconds = 30

    # --- OAuth ---------------------------------------------------------------------------------------------------

    def account_note(self, account: XAccount) -> str:
        return "" if account.subscription_type == "None" else account.subscription_type

    def oauth_refusal(self, reason: str, name: str = "") -> Refusal:
        if reason == "client":
            return oauth_error(401, "unauthorized_client", "Missing valid authorization header")
        kind = "unsupported_grant_type" if reason == "grant_type" and name else "invalid_request"
        return oauth_error(400, kind, OAUTH_REFUSALS[reason].format(name))

    def token_facts(self, pair: Token, grant_type: str) -> dict[str, Any]:  # noqa: ARG002
        facts = {
            "token_type": "bearer",
            "expires_in": self.access_seconds,
            "access_token": pair.access,
            "scope": " ".join(pair.scopes),
        }
        return facts | ({"refresh_token": pair.refresh} if pair.refresh else {})

    def revoke(self, request: SandboxRequest) -> Reply:
        client_id, form = self.client(request)
        self.require(form, "token")
        pair = self.tokens.get(form["token"]) or self.tokens.by_refresh(form["token"])
        if pair is not None and pair.client_id in (None, client_id):
            self.tokens.end_family(pair.family)
        return json_reply(200, {"revoked": True})

    # --- the caller ----------------------------------------------------------------------------------------------

    def limit_of(self, call: SandboxCall) -> str:
        return f"{call.method} {call.path.replace('{id}', ':id')}"

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        if request.account.suspended:
            raise forbidden("The user used for authentication is suspended", f"{PROBLEMS}/user-suspended")
        if not request.may(*(call.scopes or ())):
            raise forbidden()

    @api_call("GET", "/2/users/me", "tweet.read", "users.read")
    def me(self, request: SandboxRequest) -> Reply:
        fields = {"id", "name", "username", *request.query().get("user.fields", "").split(",")}
        account: XAccount = request.account
        count = len(self.posts_of(account))
        user = {
            "id": account.id,
            "name": account.name,
            "username": account.username,
            "created_at": "2020-01-01T00:00:00.000Z",
            "description": "",
            "profile_image_url": f"{request.base_url}/x/avatars/{account.picture or account.username}_normal.png",
            "protected": account.protected,
            "public_metrics": {"followers_count": 0, "following_count": 0, "post_count": count, "listed_count": 0},
            "subscription_type": account.subscription_type,
            "verified": account.verified_type != "none",
            "verified_type": account.verified_type,
        }
        return json_reply(200, {"data": {name: user[name] for name in user if name in fields}})

    # --- posts ---------------------------------------------------------------------------------------------------

    @api_call("POST", "/2/tweets", "tweet.read", "tweet.write", "users.read")
    def create_post(self, request: SandboxRequest) -> Reply:
        body, account = request.json_object(), request.account
        text = unicodedata.normalize("NFC", body.get("text", ""))
        reply_to = str(body.get("reply", {}).get("in_reply_to_tweet_id", ""))
        parent = self.find_post(reply_to)
        if reply_to and parent is None:
            raise forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
        ids: list[str] = body.get("media", {}).get("media_ids", [])
        media = tuple(item for media_id in ids if (item := self.usable_media(media_id, account)) is not None)
        if len(media) < len(ids):
            raise invalid_fields([({"media.media_ids": ids}, "Your media IDs are invalid.")])
        if text and self.was_posted_lately(account, text, reply_to):
            raise forbidden("You are not allowed to create a Tweet with duplicate content.")

        post_id = self.new_id()
        for item in media:
            item.posted_in.append(post_id)
        self.post_table.save(
            XPost(
                post_id,
                account.id,
                account.username,
                text,
                self.now(),
                media,
                options={name: value for name, value in body.items() if name not in ("text", "media")},
                client_id=request.token.client_id if request.token else None,
                received_monotonic=request.received_monotonic,
                conversation_id=parent.conversation_id or parent.id if parent else post_id,
            )
        )
        return json_reply(201, {"data": {"id": post_id, "text": text, "edit_history_post_ids": [post_id]}})

    @api_call("GET", "/2/users/{id}/tweets", "tweet.read", "users.read")
    def list_posts(self, request: SandboxRequest) -> Reply:
        query, account = request.query(), self.accounts[request.path_params["id"]]
        size, offset = int(query.get("max_results", 10)), int(query.get("pagination_token", 0))
        posts = self._listed_posts(account, query)
        page = posts[offset : offset + size]
        answer: dict[str, Any] = {"meta": {"result_count": len(page)}}
        if page:
            answer["meta"] |= {"newest_id": page[0].id, "oldest_id": page[-1].id}
            answer["data"] = [post_json(post) for post in page]
        if offset + size < len(posts):
            answer["meta"]["next_token"] = str(offset + size)
        parents = [self.find_post(post_id) for post_id in dict.fromkeys(post.in_reply_to for post in page) if post_id]
        if "expansions" in query and parents:
            answer["includes"] = {"posts": [post_json(parent) for parent in parents if parent is not None]}
        return json_reply(200, answer)

    def _listed_posts(self, account: XAccount, query: dict[str, str]) -> list[XPost]:
        """Return the posts that the query is for, newest first. Times count in whole seconds, as X shows them."""
        start = int(datetime.fromisoformat(query["start_time"]).timestamp()) if "start_time" in query else 0
        without_replies = "replies" in query.get("exclude", "").split(",")
        return [
            post
            for post in sorted(self.posts_of(account), key=lambda post: int(post.id), reverse=True)
            if int(post.created_at.timestamp()) >= start
            and not (post.in_reply_to and without_replies)
            and self.seconds_since(post.created_at) >= self.list_lag_seconds
        ]

    # --- media ---------------------------------------------------------------------------------------------------

    @api_call("POST", "/2/media/upload", "media.write")
    def upload_one_shot(self, request: SandboxRequest) -> Reply:
        part, category = file_and_field(request, "media_category")
        media = self.begin_upload(category, part.content_type or "", len(part.data), request.account.id)
        self.add_segment(media, 0, part.data)
        self.finish_upload(media)
        if media.state == FAILED:
            raise invalid("media type unrecognized.", media=part.name)
        return self._media_reply(media)

    @api_call("POST", "/2/media/upload/initialize", "media.write")
    def upload_initialize(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        media = self.begin_upload(body["media_category"], body["media_type"], body["total_bytes"], request.account.id)
        facts = {"id": media.id, "media_key": media.key, "expires_after_secs": self._seconds_left(media)}
        return json_reply(200, {"data": facts})

    @api_call("POST", "/2/media/upload/{id}/append", "media.write")
    def upload_append(self, request: SandboxRequest) -> Reply:
        media = self.own_media(request, request.path_params["id"])
        part, index = file_and_field(request, "segment_index")
        self.add_segment(media, int(index), part.data)
        return json_reply(200, {"data": {"expires_at": int(media.expires_at)}})

    @api_call("POST", "/2/media/upload/{id}/finalize", "media.write")
    def upload_finalize(self, request: SandboxRequest) -> Reply:
        media = self.own_media(request, request.path_params["id"])
        if not media.finalized:
            self.finish_upload(media)
        return self._media_reply(media)

    @api_call("GET", "/2/media/upload", "media.write")
    def upload_status(self, request: SandboxRequest) -> Reply:
        media = self.own_media(request, request.query().get("media_id", ""))
        if not media.finalized:
            raise invalid(NOT_FOUND, media_id=media.id)
        self.process(media)
        return self._media_reply(media)

    @api_call("POST", "/2/media/metadata", "media.write")
    def metadata(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        media = self.own_media(request, body["id"])
        associated: dict[str, Any] = {}
        if "alt_text" in body["metadata"]:
            media.alt_text = body["metadata"]["alt_text"]["text"]
            associated["alt_text"] = {"text": media.alt_text}
        return json_reply(200, {"data": {"id": media.id, "associated_metadata": associated}})

    def own_media(self, request: SandboxRequest, media_id: str) -> XMedia:
        media = self.find_media(media_id)
        if media is None:
            raise invalid(NOT_FOUND, media_id=media_id)
        if request.account.id != media.owner_id:
            raise forbidden("You are not allowed to use this media.")
        return media

    def _seconds_left(self, media: XMedia) -> int:
        return max(0, int(media.expires_at - self.timestamp()))

    def _media_reply(self, media: XMedia) -> Reply:
        facts: dict[str, Any] = {
            "id": media.id,
            "media_key": media.key,
            "size": media.size,
            "expires_after_secs": self._seconds_left(media),
        }
        if media.category != IMAGE:
            facts["video"] = {"video_type": media.mime_type or "video/mp4"}
        elif media.width:
            facts["image"] = {"w": media.width, "h": media.height, "image_type": media.mime_type or "image/jpeg"}
        if media.state:
            info: dict[str, Any] = {"state": media.state}
            if media.state in (PENDING, IN_PROGRESS):
                info["check_after_secs"] = self.check_after_seconds
            if media.state == IN_PROGRESS:
                info["progress_percent"] = min(99, 100 * media.polls // max(1, self.processing_ticks))
            if media.state == SUCCEEDED:
                info["progress_percent"] = 100
            facts["processing_info"] = info
        return json_reply(200, {"data": facts})


# --- bodies and responses --------------------------------------------------------------------------------------------


def oauth_error(status: int, kind: str, description: str) -> Refusal:
    answer = {"error": kind, "error_description": description}
    return Refusal(json_reply(status, answer, [("cache-control", "no-store")]))


def file_and_field(request: SandboxRequest, name: str) -> tuple[Any, str]:
    """Return the file `media` of a form, and the field beside it. Raise Refusal."""
    parts = {part.name: part for part in request.parts or ()}
    if "media" not in parts or name not in parts:
        raise invalid(f"The form must contain the fields media and {name}.")
    return parts["media"], parts[name].text


def post_json(post: XPost) -> dict[str, Any]:
    """Return a post as X's API shows it, with all fields that the sandbox knows."""
    facts: dict[str, Any] = {
        "id": post.id,
        "text": post.text,
        "edit_history_post_ids": [post.id],
        "created_at": post.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "conversation_id": post.conversation_id,
        "reply_settings": post.reply_settings,
        "paid_partnership": bool(post.options.get("paid_partnership")),
    }
    if post.media:
        facts["attachments"] = {"media_keys": [item.key for item in post.media]}
    if post.in_reply_to:
        facts["referenced_posts"] = [{"type": "replied_to", "id": post.in_reply_to}]
    return facts
