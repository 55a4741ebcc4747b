"""The memory of TikTok: how the bytes of a share arrive, and how it ends. And the words of TikTok's refusals."""

import secrets
from datetime import datetime
from typing import Any, ClassVar

from starlette.concurrency import run_in_threadpool

from socialpub.sandbox.media import Fetch, dimensions, fetch, sha256, sniff
from socialpub.sandbox.memory import SandboxContext
from socialpub.sandbox.messages import Refusal, Reply, json_reply
from socialpub.sandbox.network import COMMON_FIELDS, YES_OR_NO
from socialpub.sandbox.oauth import OAuthNetwork
from socialpub.sandbox.tiktok.tasks import (
    COMPLETE,
    FAILED,
    IN_INBOX,
    PublishTask,
    TikTokAccount,
    TikTokMedia,
    TikTokPost,
)

SOMETHING_WRONG = "Something is wrong. Please try again later."
ERRORS: dict[str, tuple[int, str]] = {
    "access_token_invalid": (401, "The access token is invalid or not found in the request."),
    "scope_not_authorized": (401, "The user did not authorize the scope required for completing this request."),
    "scope_permission_missed": (400, "A field is beyond the granted scopes."),
    "rate_limit_exceeded": (429, "The API rate limit was exceeded. Please try again later."),
    "invalid_param": (400, "A parameter of the request is not valid."),
    "invalid_params": (400, "One or more fields in the request are not valid."),
    "invalid_publish_id": (400, "The publish_id does not exist."),
    "token_not_authorized_for_specified_publish_id": (400, "The publish_id belongs to another user."),
    "publish_not_cancellable": (400, "The publishing has ended or can no longer be canceled."),
    "app_version_check_failed": (400, "The user's TikTok app is too old for this; version 31.8 or newer is needed."),
    "spam_risk_too_many_posts": (403, "The daily cap of posts from the API is reached for this user."),
    "spam_risk_user_banned_from_posting": (403, "The user is banned from making new posts."),
    "spam_risk_too_many_pending_share": (403, "The user has too many shares that are still pending."),
    "reached_active_user_cap": (403, "The daily quota of posting users of this client is reached."),
    "unaudited_client_can_only_post_to_private_accounts": (
        403,
        "Clients that have not passed the audit can only post to private accounts.",
    ),
    "url_ownership_unverified": (403, "Verify the ownership of this URL's domain or prefix first."),
    "privacy_level_option_mismatch": (403, "The privacy level is missing or not one of this user's options."),
    "internal_error": (500, SOMETHING_WRONG),
}
SENT_WITH_200 = frozenset({
    "spam_risk_too_many_posts", "spam_risk_user_banned_from_posting", "reached_active_user_cap",
})  # fmt: skip
"""By `creator_info`."""
OAUTH_ENDPOINTS = ("token", "revoke")
"""Their errors are flat, and everything else has an envelope."""
VIDEOS = ("video/mp4", "video/quicktime", "video/webm")
PHOTOS = ("image/jpeg", "image/webp")
PULL_SECONDS = 3600
TEXTS = ("title", "description", "privacy_level")


class TikTokNetwork(OAuthNetwork):
    name = "tiktok"
    label = "TikTok"
    errors = ERRORS
    unauthorized_code, limited_code = "access_token_invalid", "rate_limit_exceeded"
    default_scopes = ("user.info.basic", "video.publish", "video.upload")
    scope_mark = ","
    default_limits: ClassVar = {
        "user_info": 600, "creator_info": 20, "video_init": 6, "inbox_init": 6, "content_init": 6,
        "status_fetch": 30, "video_query": 600,
    }  # fmt: skip
    """Calls of one user and app in a minute."""
    account_kind = TikTokAccount
    accounts_name = "users"
    account_fields: ClassVar = {
        **COMMON_FIELDS,
        "private": YES_OR_NO,
        "comment_disabled": YES_OR_NO,
        "duet_disabled": YES_OR_NO,
        "stitch_disabled": YES_OR_NO,
        "banned": YES_OR_NO,
        "max_duration": r"\d{1,4}",
    }
    name_field = "display_name"
    access_seconds = 86400
    refresh_seconds = 365 * 86400
    refresh_restarts = False
    upload_seconds = 3600
    all_urls_verified = False
    """Addresses of photos need no verification."""
    processing_ticks = 2
    """Calls for the status until a whole share has ended. 0: at once."""
    processing_seconds: float = 30
    """A fully received share also ends after this time, even if its status is never requested."""
    moderation_seconds: float = 60
    """How long a public post has no id yet."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.fetch: Fetch | None = None
        """Returns the bytes of a pulled URL, or raises. None: over HTTP."""
        self.tasks = self.table("tasks", PublishTask, key=lambda task: task.publish_id)
        """All shares by publish_id, oldest first."""
        self.post_table = self.table("posts", TikTokPost)
        for number, (username, name) in enumerate((("demo", "Demo"), ("studio", "Studio")), 1):
            open_id = f"7f0c1e52-demo-4a11-9b7e-{number:012}"
            self.accounts[open_id] = self.account_kind(
                open_id, f"u-demo-{number}", username, name, private=username == "studio"
            )

    def new_account(self, username: str, name: str, **facts: Any) -> TikTokAccount:
        number = self.new_id()
        open_id = f"{secrets.token_hex(4)}-{number}"
        account: TikTokAccount = self.account_kind(open_id, f"u-{number}", username, name, **facts)
        return account

    def new_token_pair(self, *_: Any) -> tuple[str, str]:
        return f"act.{secrets.token_urlsafe(48)}", f"rft.{secrets.token_urlsafe(48)}"

    def remove_access(self, username: str) -> None:
        """Withdraw the user's permission: tokens end, and open shares fail with `auth_removed`."""
        super().remove_access(username)
        for task in self.open_tasks():
            if task.open_id == self.existing_account(username).open_id:
                self.fail(task, "auth_removed")

    # --- bytes ---------------------------------------------------------------------------------------------------

    def accept_chunk(self, task: PublishTask, data: bytes) -> None:
        """Add a chunk that arrived whole and fits the plan."""
        task.mime_type = task.mime_type if task.received else sniff(data)
        task.digest.update(data)
        self.cache.put((task.publish_id, task.chunks), data)
        task.received += len(data)
        task.chunks += 1
        if task.received < task.size:
            return
        whole = b"".join(self.cache.pop((task.publish_id, number), b"") for number in range(task.chunks))
        video = TikTokMedia(self.new_id(), task.mime_type or "video/mp4", task.size, task.digest.hexdigest())
        if len(whole) < task.size:
            whole = b""
        task.finding = self.check_video(task, whole)
        self._all_bytes_arrived(task, [(video, whole)])

    async def prepare(self, endpoint: str) -> None:
        """Pull the photos of all shares on another thread, unless this happens already."""
        for task in self.open_tasks() if endpoint in ("", "status_fetch") else ():
            if task.wants_pull:
                task.fetching = True
                self.accept_photos(task, await run_in_threadpool(self.fetch_photos, task))

    def fetch_photos(self, task: PublishTask) -> list[bytes | None]:
        return [fetch(url, self.fetch) for url in task.urls]

    def accept_photos(self, task: PublishTask, fetched: list[bytes | None]) -> None:
        task.fetching = False
        if not task.is_open:
            return
        photos = [data for data in fetched if data is not None]
        task.received = sum(map(len, photos))
        if self.seconds_since(task.created_at) >= PULL_SECONDS or len(photos) < len(task.urls):
            self.fail(task, "photo_pull_failed")
            return
        arrived = []
        for data in photos:
            finding, width, height = self.check_photo(data)
            task.finding = task.finding or finding
            media = TikTokMedia(self.new_id(), sniff(data), len(data), sha256(data), width, height)
            arrived.append((media, data))
        self._all_bytes_arrived(task, arrived)

    def _all_bytes_arrived(self, task: PublishTask, arrived: list[tuple[TikTokMedia, bytes]]) -> None:
        task.media, task.whole_at = tuple(media for media, _ in arrived), self.now()
        self.tasks.save(task)
        self.advance(task)
        for media, data in arrived:
            if data:
                self.cache.put(media.id, data)

    def check_video(self, task: PublishTask, data: bytes) -> str:  # noqa: ARG002  # for stand-ins
        """Return a fail reason, or an empty text. `data` is empty when it was not kept."""
        return "" if task.mime_type in VIDEOS else "file_format_check_failed"

    def check_photo(self, data: bytes) -> tuple[str, int, int]:
        """Return a fail reason or an empty text, width, height."""
        width, height = dimensions(data)
        return "" if width and sniff(data) in PHOTOS else "file_format_check_failed", width, height

    # --- progress ------------------------------------------------------------------------------------------------

    def open_tasks(self) -> list[PublishTask]:
        return [task for task in list(self.tasks.values()) if task.is_open]

    @property
    def posts(self) -> list[TikTokPost]:
        """All posts, oldest first. Drafts and shares in progress are no posts."""
        for task in self.open_tasks():
            self.advance(task)
        return list(self.post_table.values())

    def noticed_at(self, task: PublishTask) -> datetime | None:
        """Return when TikTok notices that all bytes are there, or None."""
        return task.whole_at

    def poll(self, task: PublishTask) -> None:
        """Count one call for the status."""
        noticed_at = self.noticed_at(task)
        if noticed_at is not None and noticed_at <= self.now():
            task.polls += 1
        self.advance(task)

    def advance(self, task: PublishTask, *, at_once: bool = False) -> None:
        """End the share after enough calls for its status, or enough seconds."""
        noticed_at = self.noticed_at(task)
        if not task.is_open or noticed_at is None:
            return
        waited = self.seconds_since(noticed_at)
        if at_once or task.polls >= self.processing_ticks or waited >= self.processing_seconds:
            self.end(task)

    def end(self, task: PublishTask) -> None:
        """End a processed share as its bytes and its kind say."""
        if task.finding:
            self.fail(task, task.finding)
        elif task.direct:
            self._complete(task, 1)
        else:
            self.close_task(task, IN_INBOX)

    def finish_draft(self, publish_id: str, posts: int = 1, privacy: str = "") -> list[TikTokPost]:
        """Post a draft as its user does in the app, once or several times. Raise ValueError if there is none."""
        task = self.tasks.get(publish_id)
        if task is None or task.status != IN_INBOX:
            raise ValueError(f"no draft {publish_id} waits in an inbox")
        if privacy:
            task.post_info["privacy_level"] = privacy
        self._complete(task, posts)
        return [self.post_table[post_id] for post_id in task.posts]

    def _complete(self, task: PublishTask, count: int) -> None:
        info = task.post_info
        privacy = info.get("privacy_level") or self.accounts[task.open_id].privacy_options[0]
        for _ in range(count):
            post = TikTokPost(
                self.new_id(), task.publish_id, task.open_id, task.username, task.kind, info.get("title") or "",
                info.get("description") or "", privacy, task.media, self.now(),
                {name: value for name, value in info.items() if name not in TEXTS}, task.client_key,
            )  # fmt: skip
            task.posts.append(self.post_table.save(post).id)
        self.close_task(task, COMPLETE)

    def fail(self, task: PublishTask, reason: str) -> None:
        task.fail_reason = reason
        self.close_task(task, FAILED)

    def close_task(self, task: PublishTask, status: str) -> None:
        task.status, task.ended_at = status, self.now()
        self.tasks.save(task)

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts), "task_count": len(self.tasks)}

    def view(self) -> dict[str, Any]:
        facts = super().view()
        for task in facts["tasks"]:
            del task["upload_token"]
        return facts

    # --- replies -------------------------------------------------------------------------------------------------

    def _log_id(self) -> str:
        return f"{self.now():%Y%m%d%H%M%S}{secrets.token_hex(10).upper()}"

    def envelope(self, status: int, code: str, message: str, data: Any = None) -> Reply:
        """Return the shape of every response but those of the token endpoints."""
        error = {"code": code, "message": message, "log_id": self._log_id()}
        return json_reply(status, {"data": data or {}, "error": error})

    def ok(self, data: Any) -> Reply:
        return self.envelope(200, "ok", "", data)

    def invalid(self, message: str) -> Refusal:
        return Refusal(self.envelope(400, "invalid_params", message))

    def oauth_error(self, error: str, description: str = SOMETHING_WRONG, status: int = 400) -> Reply:
        """Return the shape of the token endpoints."""
        return json_reply(status, {"error": error, "error_description": description, "log_id": self._log_id()})

    def http_error(self, status: int, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("server_error" if status >= 500 else "invalid_request", status=status)
        code = "internal_error" if status >= 500 else "rate_limit_exceeded" if status == 429 else "invalid_params"
        return self.envelope(status, code, SOMETHING_WRONG)

    def error_reply(self, code: str, endpoint: str) -> Reply:
        status, message = ERRORS[code]
        if endpoint in OAUTH_ENDPOINTS:
            is_common = code in (self.unauthorized_code, self.limited_code)
            name = "invalid_client" if code == self.unauthorized_code else code
            return self.oauth_error(name, status=status if is_common else 400)
        return self.envelope(200 if endpoint == "creator_info" and code in SENT_WITH_200 else status, code, message)
