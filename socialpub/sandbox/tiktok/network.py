"""The memory of TikTok: users, shares, posts, and the addresses that were verified. And the words of its refusals."""

import secrets
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.media import Fetch, dimensions, fetch, sniff
from socialpub.sandbox.memory import SandboxContext
from socialpub.sandbox.messages import Refusal, Reply, StreamedBody, json_reply
from socialpub.sandbox.network import ApiCaller, SandboxNetwork
from socialpub.sandbox.tiktok.tasks import PublishTask, TaskStore, TikTokAccount, TikTokPost, is_direct_post

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


class TikTokSandbox(SandboxNetwork[TikTokAccount]):
    name = "tiktok"
    label = "TikTok"
    endpoints = (
        "authorize", *OAUTH_ENDPOINTS, "user_info", "creator_info", "video_init", "inbox_init", "content_init",
        "upload_chunk", "status_fetch", "video_query",
    )  # fmt: skip
    errors = ERRORS
    unauthorized_code, limited_code = "access_token_invalid", "rate_limit_exceeded"
    default_scopes = ("user.info.basic", "video.publish", "video.upload")
    scope_mark = ","
    account_kind = TikTokAccount
    accounts_name = "users"
    account_fields = tuple(TikTokAccount.__slots__)
    account_flags = ("private",)
    name_field = "display_name"

    code_seconds = 300
    access_seconds = 86400
    refresh_seconds = 365 * 86400
    refresh_restarts = False
    posts_per_day = 15
    """Direct posts of one user."""
    default_limits: ClassVar = {
        "user_info": 600, "creator_info": 20, "video_init": 6, "inbox_init": 6, "content_init": 6,
        "status_fetch": 30, "video_query": 600,
    }  # fmt: skip
    """Calls of one user and app in a minute."""
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
        self.verified_prefixes: list[str] = []
        """URL prefixes verified by a file."""
        self.fetch: Fetch | None = None
        """Returns the bytes of a pulled URL, or raises. None: over HTTP."""
        self.tasks = TaskStore(self)
        for account in (
            TikTokAccount("7f0c1e52-demo-4a11-9b7e-000000000001", "u-demo-1", "demo", "Demo"),
            TikTokAccount("7f0c1e52-demo-4a11-9b7e-000000000002", "u-demo-2", "studio", "Studio", private=True),
        ):
            self.accounts[account.open_id] = account

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(self, username: str, display_name: str | None = None, **facts: Any) -> TikTokAccount:
        """Create a user. `facts` are fields of `TikTokAccount`, such as `private=True`. Raise ValueError for a username
        that exists."""
        self.refuse_taken(username)
        number = self.new_id()
        open_id = f"{secrets.token_hex(4)}-{number}"
        return self.accounts.save(TikTokAccount(open_id, f"u-{number}", username, display_name or username, **facts))

    def new_token_pair(self, *_: Any) -> tuple[str, str]:
        return f"act.{secrets.token_urlsafe(48)}", f"rft.{secrets.token_urlsafe(48)}"

    def check_caller(self, caller: ApiCaller[TikTokAccount], label: str, scopes: tuple[str, ...]) -> None:
        """One of the scopes is enough."""
        if not set(scopes) & set(caller.token.scopes):
            raise self.refused(label, "scope_not_authorized")

    def remove_access(self, username: str) -> None:
        """Withdraw the user's permission: tokens end, and open shares fail with `auth_removed`."""
        super().remove_access(username)
        for task in self.tasks.open_tasks():
            if task.open_id == self.existing_account(username).open_id:
                self.tasks.fail(task, "auth_removed")

    # --- shares --------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[TikTokPost]:
        """All posts, oldest first. Drafts and shares in progress are no posts."""
        self.tasks.advance_all()
        return list(self.tasks.posts.values())

    def begin(self, task: PublishTask) -> None:
        self.tasks.all.save(task)
        if self.context.serving:
            self.tasks.pull_in_background(task)

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts), "task_count": len(self.tasks.all)}

    def view(self) -> dict[str, Any]:
        self.tasks.advance_all()
        facts = super().view()
        for task in facts["tasks"]:
            del task["upload_token"]
        return facts

    async def before_view(self) -> None:
        for task in self.tasks.open_tasks():
            await self.tasks.pull(task)

    def verify(self, prefix: str, file_name: str, content: str) -> bool:
        """Fetch the file of a URL prefix and compare it, as the button in the portal does. Never on the event loop."""
        if not prefix.endswith("/"):
            raise ValueError("a URL prefix ends in /")
        body = fetch(prefix + file_name, self.fetch)
        data = body.data if body is not None else None
        verified = data is not None and data.decode("utf-8", "replace").strip() == content.strip()
        if verified and prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)
        return verified

    # --- what stand-ins change -----------------------------------------------------------------------------------

    def refusal_code(self, caller: ApiCaller[TikTokAccount]) -> str:
        """Return the code that keeps this account from posting now, or an empty text."""
        if caller.account.banned:
            return "spam_risk_user_banned_from_posting"
        posts = self.tasks.count_today(caller.account.open_id, self.posts_per_day, is_direct_post)
        return "spam_risk_too_many_posts" if posts >= self.posts_per_day else ""

    def may_pull(self, url: object) -> bool:
        """Return whether TikTok pulls from this address."""
        return isinstance(url, str) and (self.all_urls_verified or url.startswith(tuple(self.verified_prefixes)))

    def check_video(self, task: PublishTask, data: bytes | None) -> str:  # noqa: ARG002  # for stand-ins
        """Return a fail reason, or an empty text. `data` is None when it was not kept."""
        return "" if sniff(task.head) in VIDEOS else "file_format_check_failed"

    def check_photo(self, body: StreamedBody) -> tuple[str, int, int]:
        """Return a fail reason or an empty text, width, height."""
        width, height = dimensions(body.data or b"")
        return "" if width and sniff(body.head) in PHOTOS else "file_format_check_failed", width, height

    def fate_of_next(self) -> str:
        """Return what happens to the next share: empty, a fail reason, `never_ends`, `inbox`."""
        return ""

    def noticed_at(self, task: PublishTask) -> datetime | None:
        """Return when TikTok notices that all bytes are there, or None."""
        return task.whole_at

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

    def refused(self, endpoint: str, code: str) -> Refusal:
        return Refusal(self.refusal_reply(endpoint, code))

    def oauth_error(self, error: str, description: str, status: int = 400) -> Reply:
        """Return the shape of the token endpoints."""
        return json_reply(status, {"error": error, "error_description": description, "log_id": self._log_id()})

    def http_error(self, status: int, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("server_error" if status >= 500 else "invalid_request", SOMETHING_WRONG, status)
        code = "internal_error" if status >= 500 else "rate_limit_exceeded" if status == 429 else "invalid_params"
        return self.envelope(status, code, SOMETHING_WRONG)

    def unauthorized_reply(self, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("invalid_client", SOMETHING_WRONG, 401)
        return super().unauthorized_reply(endpoint)

    def refusal_reply(self, endpoint: str, code: str) -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error(code, SOMETHING_WRONG)
        return super().refusal_reply(endpoint, code)

    def named_reply(self, endpoint: str, code: str) -> Reply:
        status, message = ERRORS[code]
        return self.envelope(200 if endpoint == "creator_info" and code in SENT_WITH_200 else status, code, message)

    def limited_reply(self, endpoint: str) -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("rate_limit_exceeded", SOMETHING_WRONG, 429)
        return super().limited_reply(endpoint)
