"""TikTok's API: OAuth, the account, the beginning of a share, its chunks, its status, and its public videos.

No init detects a repeat.
"""

import re
import secrets
from typing import Any, ClassVar

from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall, api_call, open_call
from socialpub.sandbox.tiktok.network import TikTokNetwork
from socialpub.sandbox.tiktok.tasks import (
    COMPLETE,
    DOWNLOADING,
    PHOTO,
    UPLOADING,
    VIDEO,
    PublishTask,
    TikTokAccount,
)

OAUTH_REFUSALS = {
    "client": ("invalid_client", "Client key or secret is incorrect."),
    "form": ("invalid_request", "Only a form is supported."),
    "grant_type": ("unsupported_grant_type", "The grant type is not supported."),
    "missing": ("invalid_request", "{} is missing."),
    "code": ("invalid_grant", "Authorization code is expired or was used."),
    "redirect_uri": ("invalid_request", "Redirect_uri is not matched with the uri of the code."),
    "verifier": ("invalid_request", "Code verifier or code challenge is invalid."),
    "refresh_token": ("invalid_grant", "Refresh token is invalid or expired."),
}
DIRECT_VIDEO, INBOX_VIDEO, PHOTOS = "v_pub_file~v2-1.", "v_inbox_file~v2.", "p_pub_url~v2."
"""The beginnings of a publish_id."""
BANNED = "spam_risk_user_banned_from_posting"
RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")


class TikTokSandbox(TikTokNetwork):
    """The user picks the permissions."""

    oauth_paths = ("/v2/auth/authorize/", "/v2/oauth/token/", "/v2/oauth/revoke/")
    client_id_fields = ("client_key",)
    scopes: ClassVar = {
        "user.info.basic": "See your avatar and display name",
        "user.info.profile": "See your username, bio and profile link",
        "user.info.stats": "See your follower, like and video counts",
        "video.list": "See your public videos",
        "video.publish": "Post to your profile",
        "video.upload": "Send drafts to your inbox",
    }
    fixed_scope = "user.info.basic"
    denial: ClassVar = {
        "error": "access_denied", "error_description": "User denied authorization", "errCode": "-2",
    }  # fmt: skip
    code_seconds = 300

    # --- OAuth ---------------------------------------------------------------------------------------------------

    def account_note(self, account: TikTokAccount) -> str:
        return "private" if account.private else "public"

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def oauth_refusal(self, reason: str, name: str = "") -> Refusal:
        error, description = OAUTH_REFUSALS[reason]
        return Refusal(self.oauth_error(error, description.format(name)))

    def token_facts(self, pair: Token, grant_type: str) -> dict[str, Any]:  # noqa: ARG002
        return {
            "open_id": pair.account_id,
            "scope": ",".join(pair.scopes),
            "access_token": pair.access,
            "expires_in": self.access_seconds,
            "refresh_token": pair.refresh,
            "refresh_expires_in": int(pair.refresh_expires_at - self.timestamp()),
            "token_type": "Bearer",
        }

    def revoke(self, request: SandboxRequest) -> Reply:
        client_id, form = self.client(request)
        token = self.tokens.bearer(form.get("token"))
        if token is None or token.client_id not in (None, client_id):
            raise Refusal(self.oauth_error("invalid_request", "token is missing or not an access token."))
        self.tokens.end_family(token.family)
        return json_reply(200, {})

    # --- the account ---------------------------------------------------------------------------------------------

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """One of the scopes is enough."""
        if not any(request.may(scope) for scope in call.scopes or ()):
            raise self.refused("scope_not_authorized", call.name)

    @api_call("GET", "/v2/user/info/", "user.info.basic")
    def user_info(self, request: SandboxRequest) -> Reply:
        account: TikTokAccount = request.account
        user = {
            "open_id": account.open_id,
            "union_id": account.union_id,
            "display_name": account.display_name,
            "avatar_url": _avatar_url(request),
            "username": account.username,
            "bio_description": "",
            "profile_deep_link": f"{request.base_url}/tiktok/@{account.username}",
            "is_verified": False,
        }
        return self.ok({"user": {name: user[name] for name in _fields(request)}})

    @api_call("POST", "/v2/post/publish/creator_info/query/", "video.publish")
    def creator_info(self, request: SandboxRequest) -> Reply:
        if code := self.posting_refusal(request):
            raise self.refused(code, "creator_info")
        account: TikTokAccount = request.account
        facts = {
            "creator_avatar_url": _avatar_url(request),
            "creator_username": account.username,
            "creator_nickname": account.display_name,
            "privacy_level_options": account.privacy_options,
            "comment_disabled": account.comment_disabled,
            "duet_disabled": account.duet_disabled or account.private,
            "stitch_disabled": account.stitch_disabled or account.private,
            "max_video_post_duration_sec": account.max_duration,
        }
        return self.ok(facts)

    def posting_refusal(self, request: SandboxRequest) -> str:
        """Return the code that keeps this account from posting now, or an empty text."""
        return BANNED if request.account.banned else ""

    # --- posts ---------------------------------------------------------------------------------------------------

    @api_call("POST", "/v2/post/publish/status/fetch/", "video.upload", "video.publish")
    def status_fetch(self, request: SandboxRequest) -> Reply:
        task = self.tasks.get(str(request.json_object().get("publish_id")))
        if task is None:
            raise self.refused("invalid_publish_id")
        if task.open_id != request.account.open_id:
            raise self.refused("token_not_authorized_for_specified_publish_id")
        self.poll(task)
        data: dict[str, Any] = {"status": task.status}
        if task.fail_reason:
            data["fail_reason"] = task.fail_reason
        if task.status == COMPLETE and task.ended_at is not None:
            passed = self.seconds_since(task.ended_at) >= self.moderation_seconds
            posts = [self.post_table[post_id] for post_id in task.posts]
            data["publicaly_available_post_id"] = [int(post.id) for post in posts if passed and post.is_public]
        data["uploaded_bytes" if task.kind == VIDEO else "downloaded_bytes"] = task.received
        return self.ok(data)

    @api_call("POST", "/v2/video/query/", "video.list")
    def video_query(self, request: SandboxRequest) -> Reply:
        """Return the posts with these ids that are public and passed moderation."""
        wanted, videos = request.json_object()["filters"]["video_ids"], []
        for post in self.posts:
            passed = post.is_public and self.seconds_since(post.created_at) >= self.moderation_seconds
            if post.id in wanted and post.open_id == request.account.open_id and passed:
                video = {
                    "id": post.id,
                    "create_time": int(post.created_at.timestamp()),
                    "share_url": f"{request.base_url}/tiktok/{post.path}",
                    "title": post.title,
                    "video_description": post.title,
                }
                videos.append({name: video[name] for name in _fields(request)})
        return self.ok({"videos": videos})

    # --- the beginning of a share --------------------------------------------------------------------------------

    @api_call("POST", "/v2/post/publish/video/init/", "video.publish")
    def video_init(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        self._require_direct(request, "video_init")
        return self._begin_video(request, DIRECT_VIDEO, body["source_info"], body["post_info"])

    @api_call("POST", "/v2/post/publish/inbox/video/init/", "video.upload")
    def inbox_init(self, request: SandboxRequest) -> Reply:
        if request.account.banned:
            raise self.refused(BANNED)
        return self._begin_video(request, INBOX_VIDEO, request.json_object()["source_info"], {})

    @api_call("POST", "/v2/post/publish/content/init/", "video.publish", "video.upload")
    def content_init(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        direct = body.get("post_mode") == "DIRECT_POST"
        source, info = body["source_info"], body.get("post_info") or {}
        if direct:
            self._require_direct(request, "content_init")
        else:
            info = {name: info[name] for name in ("title", "description") if name in info}
        if request.account.banned:
            raise self.refused(BANNED)
        if not all(self.may_pull(url) for url in source["photo_images"]):
            raise self.refused("url_ownership_unverified")
        task = self.new_task(request, f"{PHOTOS}{self.new_id()}", PHOTO, direct)
        task.post_info = info | {"photo_cover_index": source["photo_cover_index"]}
        task.urls = tuple(source["photo_images"])
        self.tasks.save(task)
        return self.ok({"publish_id": task.publish_id})

    def _require_direct(self, request: SandboxRequest, endpoint: str) -> None:
        if code := self.posting_refusal(request):
            raise self.refused(code, endpoint)

    def may_pull(self, url: object) -> bool:  # noqa: ARG002  # for stand-ins
        """Return whether TikTok pulls from this address."""
        return self.all_urls_verified

    def _begin_video(self, request: SandboxRequest, kind: str, source: dict[str, Any], info: dict[str, Any]) -> Reply:
        number = self.new_id()
        task = self.new_task(request, kind + number, VIDEO, kind == DIRECT_VIDEO)
        task.post_info, task.size = dict(info), source["video_size"]
        task.chunk_size, task.chunk_count = source["chunk_size"], source["total_chunk_count"]
        task.upload_token = secrets.token_urlsafe(32)
        task.upload_expires_at = self.timestamp() + self.upload_seconds
        self.tasks.save(task)
        url = f"{request.base_url}/tiktok/upload/video/?upload_id={number}&upload_token={task.upload_token}"
        return self.ok({"publish_id": task.publish_id, "upload_url": url})

    def new_task(self, request: SandboxRequest, publish_id: str, kind: str, direct: bool) -> PublishTask:
        account, client_key = request.account, request.token.client_id if request.token else None
        status = UPLOADING if kind == VIDEO else DOWNLOADING
        return PublishTask(
            publish_id, kind, direct, account.open_id, account.username, client_key, {}, self.now(), status
        )

    # --- the upload host -----------------------------------------------------------------------------------------

    @open_call("PUT", "/upload/video/")
    def upload_chunk(self, request: SandboxRequest) -> Reply:
        """Accept a whole chunk in its order, or nothing of it. The URL is the credential."""
        query = request.query()
        ids = [kind + query.get("upload_id", "") for kind in (DIRECT_VIDEO, INBOX_VIDEO)]
        task = next((self.tasks[publish_id] for publish_id in ids if publish_id in self.tasks), None)
        if task is None or task.upload_token != query.get("upload_token"):
            return Reply(404)
        status = self.chunk_status(request, task)
        if status in (206, 201):
            self.accept_chunk(task, request.body)
        return Reply(status, headers=[("content-range", f"bytes 0-{task.received}/{task.size}")])

    def chunk_status(self, request: SandboxRequest, task: PublishTask) -> int:
        asked = RANGE.fullmatch(request.headers.get("content-range", ""))
        if asked is None:
            return 400
        first, last, total = (int(number) for number in asked.groups())
        if first != task.received:  # the response to this chunk was lost
            return 416
        return 201 if last + 1 == total else 206


def _fields(request: SandboxRequest) -> list[str]:
    return request.query()["fields"].split(",")


def _avatar_url(request: SandboxRequest) -> str:
    return f"{request.base_url}/tiktok/avatars/{request.account.picture or request.account.username}.png"
