"""The memory of TikTok: users, shares, posts, and the addresses that were verified. And the words of its refusals."""

import secrets
from dataclasses import asdict
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from socialpub.sandbox.media import fetch
from socialpub.sandbox.memory import SandboxContext, SlidingWindows, json_facts
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller, SandboxNetwork
from socialpub.sandbox.tiktok.models import PublishTask, TikTokAccount, TikTokPost, TikTokSwitches
from socialpub.sandbox.tiktok.tasks import TaskStore

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
MINUTE = 60
OAUTH_ENDPOINTS = ("token", "revoke")
"""Their errors are flat, and everything else has an envelope."""


def may_pull(switches: TikTokSwitches, url: object) -> bool:
    """Return whether TikTok pulls from this address: it is public, and verified."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    if switches.public_urls_only and (parts.scheme != "https" or _is_address(host) or "." not in host):
        return False
    if switches.all_urls_verified or any(url.startswith(prefix) for prefix in switches.verified_prefixes):
        return True
    return any(host == domain or host.endswith(f".{domain}") for domain in switches.verified_domains)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


POST_FACTS = (
    "id", "publish_id", "open_id", "username", "kind", "title", "description", "privacy", "created_at", "options",
    "client_key", "media",
)  # fmt: skip
TASK_FACTS = (
    "publish_id", "kind", "direct", "source", "username", "created_at", "status",
    "fail_reason", "post_info", "size", "chunk_size", "chunk_count", "received", "puts", "media",
)  # fmt: skip
"""What the control API shows."""


class TikTokSandbox(SandboxNetwork[TikTokAccount], TikTokSwitches):
    name = "tiktok"
    label = "TikTok"
    endpoints = (
        "authorize", *OAUTH_ENDPOINTS, "user_info", "creator_info", "video_init", "inbox_init", "content_init",
        "upload_chunk", "status_fetch", "video_query",
    )  # fmt: skip
    refusals = tuple(ERRORS)
    """The codes for `next(…).refuses(code)`."""
    default_scopes = ("user.info.basic", "video.publish", "video.upload")
    scope_mark = ","
    account_kind = TikTokAccount
    account_fields = tuple(TikTokAccount.__slots__)
    account_entry = "user"
    name_field = "display_name"

    def __init__(self, context: SandboxContext) -> None:
        SandboxNetwork.__init__(self, context)
        TikTokSwitches.__init__(self)
        self.posted_at: dict[tuple[str, str], float] = {}
        """When a user last posted through an app: by client key and open_id."""
        self.windows = SlidingWindows()
        self.tasks = TaskStore(self, self)
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
        return self.store_account(TikTokAccount(open_id, f"u-{number}", username, display_name or username, **facts))

    def new_token_pair(self, *_: Any) -> tuple[str, str]:
        return f"act.{secrets.token_urlsafe(48)}", f"rft.{secrets.token_urlsafe(48)}"

    def admit(
        self,
        request: SandboxRequest,
        label: str,
        scopes: tuple[str, ...],
        headers: Headers,  # noqa: ARG002  # TikTok adds none
    ) -> ApiCaller[TikTokAccount]:
        """The order is: bearer, scope, rate. One of the scopes is enough."""
        token = self.tokens.bearer(request.bearer)
        account = self.account_of(token) if token else None
        if token is None or account is None:
            raise self.refused(label, "access_token_invalid")
        if not set(scopes) & set(token.scopes):
            raise self.refused(label, "scope_not_authorized")
        key, limit = (label, token.account_id, token.client_id), self.limits.get(label, 600)
        if not self.windows.admits(key, limit, MINUTE, self.timestamp()):
            raise self.refused(label, "rate_limit_exceeded")
        return ApiCaller(token, account)

    def remove_access(self, username: str) -> None:
        """Withdraw the user's permission: tokens end, and open shares fail with `auth_removed`."""
        super().remove_access(username)
        self.tasks.remove_access(self.existing_account(username).open_id)

    # --- shares --------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[TikTokPost]:
        """All posts, oldest first. Drafts and shares in progress are no posts."""
        self.tasks.advance_all()
        return self.tasks.posts

    def begin(self, task: PublishTask) -> None:
        self.tasks.begin(task)
        if task.direct:
            self.posted_at[(task.client_key or "", task.open_id)] = self.timestamp()
        if self.context.serving:
            self.tasks.pull_in_background(task)

    def catch_up(self) -> list[TikTokPost]:
        """Return the posts as if all pulls and processing were over. Never on the event loop: it may fetch."""
        self.tasks.catch_up()
        return self.tasks.posts

    def next_fate(self, fate: str, times: int = 1) -> None:
        """Set the fate of the next share: a fail reason, `never_ends`, `inbox` or `completes`."""
        self.tasks.fates.schedule(fate, times)

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts), "task_count": len(self.tasks.all)}

    def view(self) -> dict[str, Any]:
        return {
            "users": [asdict(account) for account in self.accounts.values()],
            "posts": [json_facts(post, POST_FACTS) for post in self.posts],
            "tasks": [
                json_facts(task, TASK_FACTS) | {"posts": [post.id for post in task.posts]}
                for task in self.tasks.all.values()
            ],
        }

    async def before_view(self) -> None:
        await self.tasks.pull_all()

    def verify(self, prefix: str, file_name: str, content: str) -> bool:
        """Fetch the file of a URL prefix and compare it, as the button in the portal does. Never on the event loop."""
        if not prefix.endswith("/"):
            raise ValueError("a URL prefix ends in /")
        found = fetch(prefix + file_name, self.fetch)
        data = found.data if found is not None else None
        verified = data is not None and data.decode("utf-8", "replace").strip() == content.strip()
        if verified and prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)
            self.write("prefix", prefix=prefix)
        return verified

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay(self, kind: str, facts: dict[str, Any]) -> None:
        replay = getattr(self.tasks, f"replay_{kind}", None)
        if replay is not None:
            replay(**facts)
        else:
            super().replay(kind, facts)

    def replay_user(self, **facts: Any) -> None:
        self.replay_account(**facts)

    def replay_prefix(self, prefix: str) -> None:
        if prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)

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

    def oauth_error(self, error: str, description: str, status: int = 0) -> Reply:
        """Return the shape of the token endpoints. `status` 0: as `oauth_error_status` says."""
        facts = {"error": error, "error_description": description, "log_id": self._log_id()}
        return json_reply(status or self.oauth_error_status, facts)

    def http_error(self, status: int, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("server_error" if status >= 500 else "invalid_request", SOMETHING_WRONG, status)
        code = "internal_error" if status >= 500 else "rate_limit_exceeded" if status == 429 else "invalid_params"
        return self.envelope(status, code, SOMETHING_WRONG)

    def unauthorized_reply(self, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error("invalid_client", SOMETHING_WRONG, 401)
        return self.refusal_reply(endpoint, "access_token_invalid")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:
        """Return the refusal with this code. Raise ValueError for a code that TikTok does not have."""
        if endpoint in OAUTH_ENDPOINTS:
            return self.oauth_error(code, SOMETHING_WRONG, 400)
        if code not in ERRORS:
            raise ValueError(f"tiktok has no refusal named {code!r} (known: {', '.join(ERRORS)})")
        status, message = ERRORS[code]
        return self.envelope(200 if endpoint == "creator_info" and code in SENT_WITH_200 else status, code, message)

    def rate_limited_reply(self, seconds: float, told_in: str, endpoint: str = "") -> Reply:
        if endpoint in OAUTH_ENDPOINTS:
            reply = self.oauth_error("rate_limit_exceeded", SOMETHING_WRONG, 429)
        else:
            reply = self.refusal_reply(endpoint, "rate_limit_exceeded")
        if told_in == "retry-after":
            reply.headers.append(("retry-after", str(int(seconds))))
        return reply
