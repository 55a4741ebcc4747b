"""The memory of TikTok: users, shares, posts, and the addresses that were proved to it."""

import secrets
from collections.abc import Iterable
from typing import Any

from socialpub.sandbox.context import SandboxContext
from socialpub.sandbox.faults import FaultScript
from socialpub.sandbox.oauth import OAuthNetwork
from socialpub.sandbox.rate_windows import SlidingWindows
from socialpub.sandbox.reply import Reply, json_reply
from socialpub.sandbox.tiktok import error_codes
from socialpub.sandbox.tiktok.apps import TikTokApp
from socialpub.sandbox.tiktok.media_intake import MediaIntake
from socialpub.sandbox.tiktok.models import PublishTask, TikTokAccount, TikTokPost
from socialpub.sandbox.tiktok.oauth_errors import OAuthErrorReplies
from socialpub.sandbox.tiktok.switches import TikTokSwitches
from socialpub.sandbox.tiktok.task_store import TaskStore
from socialpub.sandbox.tiktok.url_properties import UrlProperty, is_proved


class TikTokSandbox(OAuthNetwork[TikTokAccount, TikTokApp], TikTokSwitches):
    name = "tiktok"
    endpoints = (
        "authorize",
        "token",
        "revoke",
        "user_info",
        "creator_info",
        "video_init",
        "inbox_init",
        "content_init",
        "upload_chunk",
        "status_fetch",
        "cancel",
        "video_query",
        "video_list",
    )
    refusals = tuple(error_codes.ERRORS)
    """What `next(…).refuses(code)` knows."""
    default_scopes = ("user.info.basic", "video.publish", "video.upload")
    scope_mark = ","
    account_fields = tuple(TikTokAccount.__slots__)
    account_entry = "user"
    name_field = "display_name"

    def __init__(self, context: SandboxContext) -> None:
        OAuthNetwork.__init__(self, context)
        TikTokSwitches.__init__(self)
        self.spent_at: dict[str, float] = {}
        """When a refresh token was used."""
        self.posted_at: dict[tuple[str, str], float] = {}
        """When a user last posted through an app: by client key and open_id."""
        self.properties: dict[str, UrlProperty] = {}
        """By prefix."""
        self.windows = SlidingWindows()
        self.tasks = TaskStore(self, context, self.accounts, self.write)
        self.intake = MediaIntake(self, context, self.accounts, self.tasks)
        for account in (
            TikTokAccount("7f0c1e52-demo-4a11-9b7e-000000000001", "u-demo-1", "demo", "Demo"),
            TikTokAccount("7f0c1e52-demo-4a11-9b7e-000000000002", "u-demo-2", "studio", "Studio", private=True),
        ):
            self.accounts[account.open_id] = account

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(self, username: str, display_name: str | None = None, **facts: Any) -> TikTokAccount:
        """A new user; `facts` are fields of `TikTokAccount` (`private=True`, `max_duration=180`, …). A username that
        exists is ValueError."""
        self.refuse_taken(username)
        number = self.new_id()
        open_id = f"{secrets.token_hex(4)}-{number}"
        return self.store_account(TikTokAccount(open_id, f"u-{number}", username, display_name or username, **facts))

    def add_app(
        self, client_key: str, client_secret: str = "", redirect_uris: Iterable[str] = (), **facts: Any
    ) -> TikTokApp:
        """Register an app; from then on its secret and addresses are checked. `facts`: other fields of `TikTokApp`."""
        app = self.apps[client_key] = TikTokApp(client_key, client_secret, tuple(redirect_uris), **facts)
        return app

    def unregistered_app(self, client_id: str) -> TikTokApp:
        return TikTokApp(client_id, audited=self.audited)

    def is_audited(self, client_key: str | None) -> bool:
        app = self.apps.get(client_key or "")
        return app.audited if app is not None else self.audited

    def new_token_pair(self, scopes: tuple[str, ...], *, sandbox: bool) -> tuple[str, str]:  # noqa: ARG002
        return f"act.{secrets.token_urlsafe(48)}", f"rft.{secrets.token_urlsafe(48)}"

    def remove_access(self, username: str) -> None:
        """The user takes the permission back: tokens die, what is on its way fails with `auth_removed`."""
        super().remove_access(username)
        self.tasks.remove_access(self.existing_account(username).open_id)

    # --- shares --------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[TikTokPost]:
        """What was posted, oldest first, whoever may see it. Drafts and what still processes are not in here."""
        self.tasks.advance_all()
        return self.tasks.posts

    def begin(self, task: PublishTask) -> None:
        self.tasks.begin(task)
        if self.context.serving:
            self.intake.pull_in_background(task)

    def catch_up(self) -> list[TikTokPost]:
        """The posts, as if all pulls and processing were over. Never on the event loop: it may fetch."""
        self.intake.catch_up()
        return self.tasks.posts

    def next_fate(self, fate: str, times: int = 1) -> None:
        """What becomes of the next share begun: a fail reason, `never_ends`, `inbox` or `completes`."""
        self.tasks.fates.schedule(fate, times)

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts), "task_count": len(self.tasks.all)}

    # --- URL properties ------------------------------------------------------------------------------------------

    def add_property(self, prefix: str, file_name: str = "", content: str = "") -> UrlProperty:
        """A URL prefix (ending in `/`) that somebody claims, and the file that will prove it."""
        if not prefix.endswith("/"):
            raise ValueError("a URL prefix ends in /")
        claim = self.properties[prefix] = UrlProperty(prefix)
        claim.file_name, claim.content = file_name or claim.file_name, content or claim.content
        return claim

    def verify(self, prefix: str) -> bool:
        """The portal's button: fetch the file of a property and compare. Blocks; never on the event loop."""
        claim = self.properties[prefix]
        claim.verified = is_proved(self, claim)
        if claim.verified and prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)
            self.write("prefix", prefix=prefix)
        return claim.verified

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay(self, kind: str, facts: dict[str, Any]) -> None:
        replay = getattr(self.tasks, f"replay_{kind}", None)
        if replay is not None:
            replay(**facts)
        else:
            super().replay(kind, facts)

    def replay_user(self, **facts: Any) -> None:
        account = TikTokAccount(**facts)
        self.accounts[account.open_id] = account

    def replay_prefix(self, prefix: str) -> None:
        if prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)

    # --- replies -------------------------------------------------------------------------------------------------

    def log_id(self) -> str:
        return f"{self.now():%Y%m%d%H%M%S}{secrets.token_hex(10).upper()}"

    def envelope(self, status: int, code: str, message: str, data: Any = None) -> Reply:
        """Shape A, of everything but tokens."""
        error = {"code": code, "message": message, "log_id": self.log_id()}
        return json_reply(status, {"data": {} if data is None else data, "error": error})

    def oauth_error(self, error: str, description: str) -> Reply:
        """Shape B, of the token endpoints."""
        facts = {"error": error, "error_description": description, "log_id": self.log_id()}
        return json_reply(self.oauth_error_status, facts)

    def next(self, endpoint: str) -> FaultScript:
        if endpoint in ("token", "revoke"):
            return FaultScript(self._faults[endpoint], OAuthErrorReplies(self), endpoint)
        return super().next(endpoint)

    def http_error(self, status: int) -> Reply:
        code = "internal_error" if status >= 500 else "rate_limit_exceeded" if status == 429 else "invalid_params"
        return self.envelope(status, code, "Something is wrong. Please try again later.")

    def unauthorized_reply(self) -> Reply:
        return self.refusal_reply("", "access_token_invalid")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:
        status, message = error_codes.status_and_message(endpoint, code)
        return self.envelope(status, code, message)

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply:
        reply = self.refusal_reply("", "rate_limit_exceeded")
        if told_in == "retry-after":
            reply.headers.append(("retry-after", str(int(seconds))))
        return reply
