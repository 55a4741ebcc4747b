"""The memory of X: accounts, uploads, posts."""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.apps import SandboxApp
from socialpub.sandbox.context import SandboxContext
from socialpub.sandbox.json_facts import json_facts
from socialpub.sandbox.oauth import OAuthNetwork
from socialpub.sandbox.rate_windows import FixedWindows
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.x import problems, rate_headers
from socialpub.sandbox.x.media_store import XMediaStore
from socialpub.sandbox.x.models import SUBSCRIPTIONS, XAccount, XMedia, XPost
from socialpub.sandbox.x.switches import XSwitches

ALL_SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
JOURNALED = (
    "account_id", "username", "text", "created_at", "options", "client_id", "shown_text", "entities",
    "conversation_id",
)  # fmt: skip
JOURNALED_MEDIA = ("id", "key", "category", "mime_type", "size", "sha256", "alt_text")


class XSandbox(OAuthNetwork[XAccount, SandboxApp], XSwitches):
    name = "x"
    endpoints = (
        "authorize",
        "token",
        "revoke",
        "me",
        "upload_one_shot",
        "upload_initialize",
        "upload_append",
        "upload_finalize",
        "upload_status",
        "metadata",
        "create_post",
        "read_post",
        "list_posts",
        "delete_post",
    )
    default_scopes = ALL_SCOPES
    reveals_refresh_expiry = False
    account_fields = ("subscription_type", "protected", "suspended", "max_length")
    account_choices: ClassVar = {"subscription_type": SUBSCRIPTIONS}

    def __init__(self, context: SandboxContext) -> None:
        OAuthNetwork.__init__(self, context)
        XSwitches.__init__(self)
        self.media = XMediaStore(self, context)
        self.windows = FixedWindows()
        self.posts: list[XPost] = []
        """Everything ever posted, oldest first; a deleted post stays, with `deleted_at`."""
        self._posts: dict[str, XPost] = {}
        self._posts_of: dict[str, list[XPost]] = {}
        self._last_posted_at: dict[tuple[str, str, str], datetime] = {}
        """By account id, words, and the post that is replied to."""
        for number, (username, name, tier) in enumerate((("demo", "Demo", "None"), ("studio", "Studio", "Premium"))):
            account = XAccount(str(1000000000000000001 + number), username, name, tier)
            self.accounts[account.id] = account

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(
        self,
        username: str,
        *,
        name: str | None = None,
        subscription_type: str = "None",
        protected: bool = False,
        suspended: bool = False,
        max_length: int | None = None,
    ) -> XAccount:
        """A new account; a username that exists is ValueError."""
        self.refuse_taken(username)
        return self.store_account(
            XAccount(self.new_id(), username, name or username, subscription_type, protected, suspended, max_length)
        )

    def account_named(self, username: str) -> XAccount | None:
        """In whatever case it is written."""
        wanted = username.lower()
        return next((one for one in list(self.accounts.values()) if one.username.lower() == wanted), None)

    def add_app(
        self, client_id: str, client_secret: str | None, redirect_uris: Iterable[str] = (), name: str = ""
    ) -> SandboxApp:
        """Register an app; from then on its secret and addresses are checked. No secret: a public client."""
        app = self.apps[client_id] = SandboxApp(client_id, client_secret, tuple(redirect_uris), name)
        return app

    def unregistered_app(self, client_id: str) -> SandboxApp:
        return SandboxApp(client_id)

    def app_token(self, client_id: str = "app") -> str:
        """An application-only bearer, which no user endpoint takes."""
        token = self.tokens.issue(
            "", (), access=_opaque(), refresh=None, seconds=10**9, refresh_seconds=0, client_id=client_id, app_only=True
        )
        return token.access

    def new_token_pair(self, scopes: tuple[str, ...], *, sandbox: bool) -> tuple[str, str | None]:  # noqa: ARG002
        return _opaque(), _opaque() if "offline.access" in scopes else None

    # --- posts ---------------------------------------------------------------------------------------------------

    def posts_of(self, account: XAccount | str) -> list[XPost]:
        """By an account, its id or its username; oldest first, deleted ones too."""
        if isinstance(account, str):
            found = self.accounts.get(account) or self.account_named(account)
            if found is None:
                return []
            account = found
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str) -> XPost | None:
        """One that is still up."""
        post = self._posts.get(post_id)
        return None if post is None or post.deleted_at is not None else post

    def is_listed(self, post: XPost) -> bool:
        """It is old enough to show in lists."""
        return not self.list_lag_seconds or self.seconds_since(post.created_at) >= self.list_lag_seconds

    def was_posted_lately(self, account: XAccount, text: str, reply_to: str) -> bool:
        """The same words by the same account in the same place, within the window for duplicates."""
        before = self._last_posted_at.get(_content_key(account.id, text, reply_to))
        return before is not None and self.seconds_since(before) < self.duplicate_window_seconds

    def add_post(self, post: XPost) -> None:
        self._keep_post(post)
        media = [json_facts(item, JOURNALED_MEDIA) for item in post.media]
        self.write("post", post_id=post.id, media=media, **json_facts(post, JOURNALED))

    def _keep_post(self, post: XPost) -> None:
        for item in post.media:
            item.posted_in.append(post.id)
        self.posts.append(post)
        self._posts[post.id] = post
        self._posts_of.setdefault(post.account_id, []).append(post)
        self._last_posted_at[_content_key(post.account_id, post.text, post.in_reply_to or "")] = post.created_at

    def delete_post(self, post: XPost) -> None:
        post.deleted_at = self.now()
        self.write("post_deleted", post_id=post.id, deleted_at=post.deleted_at.isoformat())

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts)}

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_account(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self.accounts[facts["id"]] = XAccount(**facts)

    def replay_post(self, post_id: str, created_at: str, media: list[dict[str, Any]], **facts: Any) -> None:
        self.reserve_id(post_id)
        kept = []
        for item in media:
            self.reserve_id(item["id"])
            kept.append(
                XMedia(
                    item["id"], item["key"], item["category"], item["mime_type"], facts["account_id"], (), 0,
                    item["size"], item["size"], item["sha256"], alt_text=item["alt_text"], finalized=True,
                )
            )  # fmt: skip
            self.media.all[item["id"]] = kept[-1]
        self._keep_post(XPost(post_id, created_at=datetime.fromisoformat(created_at), media=tuple(kept), **facts))

    def replay_post_deleted(self, post_id: str, deleted_at: str) -> None:
        if post := self._posts.get(post_id):
            post.deleted_at = datetime.fromisoformat(deleted_at)

    # --- scripted errors -----------------------------------------------------------------------------------------

    def http_error(self, status: int) -> Reply:
        return problems.problem(status)

    def unauthorized_reply(self) -> Reply:
        return problems.unauthorized()

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply:
        return rate_headers.rate_limited(self.timestamp(), seconds, told_in)

    def credits_reply(self, shape: int) -> Reply:
        return problems.credits_depleted(shape)


def _opaque() -> str:
    return secrets.token_urlsafe(72)


def _content_key(account_id: str, text: str, reply_to: str) -> tuple[str, str, str]:
    return account_id, " ".join(text.split()), reply_to
