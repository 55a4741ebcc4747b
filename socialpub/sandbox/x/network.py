"""The memory of X: accounts, apps, codes, tokens, uploads, posts."""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer
from socialpub.sandbox.network import Network
from socialpub.sandbox.windows import Windows
from socialpub.sandbox.x import access, problems
from socialpub.sandbox.x.accounts import Account
from socialpub.sandbox.x.apps import App
from socialpub.sandbox.x.create_rules import DUPLICATE
from socialpub.sandbox.x.media import Media, MediaRoom
from socialpub.sandbox.x.posts import Post
from socialpub.sandbox.x.switches import Switches

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.world import World

ALL_SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")


class X(Network, Switches):
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

    def __init__(self, world: "World") -> None:
        Network.__init__(self, world)
        Switches.__init__(self)
        self.accounts: dict[str, Account] = {}
        self.apps: dict[str, App] = {}
        self.codes: dict[str, Any] = {}
        self.media = MediaRoom(self)
        self.windows = Windows()
        self.posts: list[Post] = []
        """Everything ever posted, oldest first; a deleted post stays, with `deleted_at`."""
        self._posts: dict[str, Post] = {}
        self._posts_of: dict[str, list[Post]] = {}
        self._said: dict[tuple[str, str, str], datetime] = {}
        for number, (username, name, tier) in enumerate((("demo", "Demo", "None"), ("studio", "Studio", "Premium"))):
            self._keep_account(Account(str(1000000000000000001 + number), username, name, tier))

    # --- set up --------------------------------------------------------------------------------------------------

    def add_account(
        self,
        username: str,
        *,
        name: str | None = None,
        subscription_type: str = "None",
        protected: bool = False,
        suspended: bool = False,
        max_length: int | None = None,
    ) -> Account:
        """A new account; a username that exists is ValueError."""
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")
        account = Account(
            self.world.new_id(), username, name or username, subscription_type, protected, suspended, max_length
        )
        self._keep_account(account)
        facts = {slot: getattr(account, slot) for slot in Account.__slots__}
        self.world.write("x", "account", **facts)
        return account

    def _keep_account(self, account: Account) -> None:
        self.accounts[account.id] = account
        self._posts_of.setdefault(account.id, [])

    def add_app(
        self,
        client_id: str,
        client_secret: str | None,
        redirect_uris: Iterable[str] = (),
        name: str = "",
    ) -> App:
        """Register an app; from then on its secret and addresses are checked. No secret: a public client."""
        app = self.apps[client_id] = App(client_id, client_secret, tuple(redirect_uris), name)
        return app

    def grant(
        self,
        account: Account | str,
        scopes: Iterable[str] = ALL_SCOPES,
        expires_in: float | None = None,
        client_id: str | None = None,
    ) -> dict[str, str]:
        """Tokens without a consent, in the shape that `import-profile` takes. A username not known yet gets an account.

        Without `client_id` any app may refresh them."""
        if isinstance(account, str):
            account = self.account_named(account) or self.add_account(account)
        token = self.issue(account.id, tuple(scopes), client_id=client_id, seconds=expires_in)
        expires_at = self.world.now() + timedelta(seconds=self.access_seconds if expires_in is None else expires_in)
        granted = {
            "accessToken": token.access,
            "expiresAt": expires_at.isoformat(timespec="milliseconds"),
            "scope": " ".join(token.scopes),
        }
        return granted if token.refresh is None else granted | {"refreshToken": token.refresh}

    def app_token(self, client_id: str = "app") -> str:
        """An application-only bearer, which no user endpoint takes."""
        token = self.tokens.issue(
            "", (), access=_opaque(), refresh=None, seconds=10**9, refresh_seconds=0, client_id=client_id, app_only=True
        )
        return token.access

    def issue(
        self,
        account_id: str,
        scopes: tuple[str, ...],
        *,
        client_id: str | None,
        family: str | None = None,
        seconds: float | None = None,
    ) -> "Token":
        return self.tokens.issue(
            account_id,
            scopes,
            access=_opaque(),
            refresh=_opaque() if "offline.access" in scopes else None,
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds,
            client_id=client_id,
            family=family,
        )

    # --- questions -----------------------------------------------------------------------------------------------

    def account_of(self, token: "Token") -> Account | None:
        return self.accounts.get(token.account_id)

    def account_named(self, username: str) -> Account | None:
        wanted = username.lower()
        return next((one for one in list(self.accounts.values()) if one.username.lower() == wanted), None)

    def posts_of(self, account: Account | str) -> list[Post]:
        """By an account, its id or its username; oldest first, deleted ones too."""
        if isinstance(account, str):
            found = self.accounts.get(account) or self.account_named(account)
            if found is None:
                return []
            account = found
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str) -> Post | None:
        """One that is still up."""
        post = self._posts.get(post_id)
        return None if post is None or post.deleted_at is not None else post

    def listed_by_now(self, post: Post) -> bool:
        return not self.list_lag_seconds or (
            (self.world.now() - post.created_at).total_seconds() >= self.list_lag_seconds
        )

    # --- effects -------------------------------------------------------------------------------------------------

    def refuse_duplicate(self, account: Account, text: str, body: dict[str, Any], now: datetime) -> None:
        said = (account.id, " ".join(text.split()), str(body.get("reply", {}).get("in_reply_to_tweet_id", "")))
        before = self._said.get(said)
        if text and before is not None and (now - before).total_seconds() < self.duplicate_window_seconds:
            raise problems.forbidden(DUPLICATE)

    def add_post(self, post: Post) -> None:
        self._keep_post(post)
        media = [
            {
                "id": item.id,
                "key": item.key,
                "category": item.category,
                "mime_type": item.mime_type,
                "size": item.size,
                "sha256": item.sha256,
                "alt_text": item.alt_text,
            }
            for item in post.media
        ]
        self.world.write(
            "x",
            "post",
            post_id=post.id,
            account_id=post.account_id,
            username=post.username,
            text=post.text,
            created_at=post.created_at.isoformat(),
            media=media,
            options=post.options,
            client_id=post.client_id,
            shown_text=post.shown_text,
            entities=post.entities,
        )

    def _keep_post(self, post: Post) -> None:
        for item in post.media:
            item.posted_in.append(post.id)
        self.posts.append(post)
        self._posts[post.id] = post
        self._posts_of.setdefault(post.account_id, []).append(post)
        self._said[(post.account_id, " ".join(post.text.split()), post.in_reply_to or "")] = post.created_at

    def delete_post(self, post: Post) -> None:
        post.deleted_at = self.world.now()
        self.world.write("x", "post_deleted", post_id=post.id, deleted_at=post.deleted_at.isoformat())

    # --- from the journal ----------------------------------------------------------------------------------------

    def recall_account(self, **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        self._keep_account(Account(**facts))

    def recall_post(self, post_id: str, created_at: str, media: list[dict[str, Any]], **facts: Any) -> None:
        self.world.saw_id(post_id)
        kept = []
        for item in media:
            self.world.saw_id(item["id"])
            kept.append(
                Media(
                    item["id"], item["key"], item["category"], item["mime_type"], facts["account_id"], (), 0,
                    item["size"], item["size"], item["sha256"], alt_text=item["alt_text"], finalized=True,
                )
            )  # fmt: skip
            self.media.all[item["id"]] = kept[-1]
        self._keep_post(Post(post_id, created_at=datetime.fromisoformat(created_at), media=tuple(kept), **facts))

    def recall_post_deleted(self, post_id: str, deleted_at: str) -> None:
        if post := self._posts.get(post_id):
            post.deleted_at = datetime.fromisoformat(deleted_at)

    # --- scripted refusals ---------------------------------------------------------------------------------------

    def http_error(self, status: int) -> Answer:
        return problems.problem(status)

    def unauthorized_answer(self) -> Answer:
        return problems.unauthorized()

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        return access.rate_limited(self, seconds, told_in)

    def credits_answer(self, shape: int) -> Answer:
        return problems.credits_depleted(shape)


def _opaque() -> str:
    return secrets.token_urlsafe(72)
