"""The memory of TikTok: users, apps, codes, tokens, shares, posts."""

import secrets
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, answer_json
from socialpub.sandbox.fetching import Fetch
from socialpub.sandbox.network import Network
from socialpub.sandbox.tiktok import codes, properties
from socialpub.sandbox.tiktok.apps import App
from socialpub.sandbox.tiktok.properties import Property
from socialpub.sandbox.tiktok.shown import shown
from socialpub.sandbox.tiktok.switches import Switches
from socialpub.sandbox.tiktok.taskroom import TaskRoom
from socialpub.sandbox.tiktok.tasks import Media, Post, Task
from socialpub.sandbox.tiktok.users import User
from socialpub.sandbox.windows import SlidingWindows

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.consent import Code
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.world import World

ALL_SCOPES = ("user.info.basic", "video.publish", "video.upload")


class TikTok(Network, Switches):
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
    refusals = tuple(codes.WORDS)
    """What `next(…).refuses(code)` knows."""

    def __init__(self, world: "World") -> None:
        Network.__init__(self, world)
        Switches.__init__(self)
        self.users: dict[str, User] = {}
        """By open_id."""
        self.apps: dict[str, App] = {}
        self.codes: dict[str, Code] = {}
        self.spent_at: dict[str, float] = {}
        """When a refresh token was used."""
        self.posted_at: dict[tuple[str, str], float] = {}
        """When a user last posted through an app: by client key and open_id."""
        self.properties: dict[str, Property] = {}
        """By prefix."""
        self.fetch: Fetch | None = None
        """Gives the bytes behind a URL that is pulled, or raises; None: over HTTP."""
        self.windows = SlidingWindows()
        self.tasks = TaskRoom(self)
        self._keep(User("7f0c1e52-demo-4a11-9b7e-000000000001", "u-demo-1", "demo", "Demo"))
        self._keep(User("7f0c1e52-demo-4a11-9b7e-000000000002", "u-demo-2", "studio", "Studio", private=True))

    @property
    def posts(self) -> list[Post]:
        """What was posted, oldest first, whoever may see it. Drafts and what still processes are not in here."""
        self.tasks.advance_all()
        return self.tasks.posts

    def catch_up(self) -> list[Post]:
        """The posts, as if all pulls and processing were over. Never on the event loop: it may fetch."""
        self.tasks.catch_up()
        return self.tasks.posts

    # --- set up --------------------------------------------------------------------------------------------------

    def add_user(self, username: str, display_name: str | None = None, **facts: Any) -> User:
        """A new user; `facts` are fields of `User` (`private=True`, `max_duration=180`, …). A username that exists is
        ValueError."""
        if self.user_named(username) is not None:
            raise ValueError(f"there is a user {username!r} already")
        number = self.world.new_id()
        user = User(f"{secrets.token_hex(4)}-{number}", f"u-{number}", username, display_name or username, **facts)
        self._keep(user)
        self.world.write("tiktok", "user", **asdict(user))
        return user

    def change_user(self, username: str, **facts: Any) -> User:
        """Change settings of a user, such as `private` or `banned`."""
        user = self.user_named(username)
        unknown = [name for name in facts if name not in User.__slots__]
        if user is None or unknown:
            raise ValueError(f"no such user or field: {username} {' '.join(unknown)}".rstrip())
        for name, value in facts.items():
            setattr(user, name, value)
        self.world.write("tiktok", "user", **asdict(user))
        return user

    def _keep(self, user: User) -> None:
        self.users[user.open_id] = user

    def user_named(self, username: str) -> User | None:
        return next((user for user in list(self.users.values()) if user.username == username), None)

    def add_app(self, client_key: str, client_secret: str = "", redirect_uris: Iterable[str] = (), **facts: Any) -> App:
        """Register an app; from then on its secret and addresses are checked. `facts`: other fields of `App`."""
        app = self.apps[client_key] = App(client_key, client_secret, tuple(redirect_uris), **facts)
        return app

    def add_property(self, prefix: str, file_name: str = "", content: str = "") -> Property:
        """A URL prefix (ending in `/`) that somebody says is theirs, and the file that will prove it."""
        if not prefix.endswith("/"):
            raise ValueError("a URL prefix ends in /")
        claim = self.properties[prefix] = Property(prefix)
        claim.file_name, claim.content = file_name or claim.file_name, content or claim.content
        return claim

    def verify(self, prefix: str) -> bool:
        """Fetch the file of a property and compare. Blocks; never on the event loop."""
        return properties.verify(self, self.properties[prefix])

    def remove_access(self, username: str) -> None:
        """The user takes the permission back: tokens die, what is on its way fails with `auth_removed`."""
        user = self.user_named(username)
        if user is None:
            raise ValueError(f"no such user: {username}")
        for token in self.tokens.of(user.open_id):
            if not token.dead:
                self.tokens.end_family(token.family)
        self.tasks.remove_access(user.open_id)

    def grant(
        self,
        user: User | str,
        scopes: Iterable[str] = ALL_SCOPES,
        expires_in: float | None = None,
        client_key: str | None = None,
    ) -> dict[str, str]:
        """Tokens without a consent, in the shape that `import-profile` takes. A new username makes a new user."""
        if isinstance(user, str):
            user = self.user_named(user) or self.add_user(user)
        seconds = self.access_seconds if expires_in is None else expires_in
        token = self.issue(user.open_id, tuple(scopes), client_key, seconds=seconds)
        now = self.world.now()
        return {
            "accessToken": token.access,
            "refreshToken": token.refresh or "",
            "expiresAt": (now + timedelta(seconds=seconds)).isoformat(timespec="milliseconds"),
            "refreshExpiresAt": (now + timedelta(seconds=self.refresh_seconds)).isoformat(timespec="milliseconds"),
            "scope": ",".join(token.scopes),
        }

    def issue(
        self,
        open_id: str,
        scopes: tuple[str, ...],
        client_key: str | None,
        *,
        seconds: float | None = None,
        refresh: str | None = None,
        refresh_seconds: float | None = None,
        family: str | None = None,
    ) -> "Token":
        return self.tokens.issue(
            open_id,
            scopes,
            access=f"act.{secrets.token_urlsafe(48)}",
            refresh=refresh or f"rft.{secrets.token_urlsafe(48)}",
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds if refresh_seconds is None else refresh_seconds,
            client_id=client_key,
            family=family,
        )

    # --- the journal ---------------------------------------------------------------------------------------------

    def journal_task(self, task: Task) -> None:
        names = (
            "publish_id", "direct", "source", "open_id", "username", "client_key", "post_info", "fate", "size",
            "chunk_size", "chunk_count", "urls", "upload_token", "upload_expires_at", "status",
        )  # fmt: skip
        facts = {name: getattr(task, name) for name in names}
        self.world.write("tiktok", "task", media=task.kind, created_at=task.created_at.isoformat(), **facts)

    def journal_whole(self, task: Task) -> None:
        media = [asdict(item) for item in task.media]
        at = self.world.now().isoformat()
        self.world.write("tiktok", "whole", publish_id=task.publish_id, at=at, media=media, finding=task.finding)

    def journal_ended(self, task: Task) -> None:
        self.world.write(
            "tiktok", "ended", publish_id=task.publish_id, status=task.status, fail_reason=task.fail_reason,
            posts=[post.id for post in task.posts], privacy=task.post_info.get("privacy_level", ""),
            at=self.world.now().isoformat(),
        )  # fmt: skip

    def recall_user(self, **facts: Any) -> None:
        self._keep(User(**facts))

    def recall_prefix(self, prefix: str) -> None:
        if prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)

    def recall_task(self, media: str, created_at: str, urls: list[str], **facts: Any) -> None:
        self.world.saw_id(facts["publish_id"].rpartition(".")[2])
        self.tasks.keep(Task(kind=media, created_at=datetime.fromisoformat(created_at), urls=tuple(urls), **facts))

    def recall_whole(self, publish_id: str, at: str, media: list[dict[str, Any]], finding: str) -> None:
        task = self.tasks.all[publish_id]
        task.media = tuple(Media(**item) for item in media)
        for item in task.media:
            self.world.saw_id(item.id)
            self.tasks.media[item.id] = item
        task.received = sum(item.size for item in task.media)
        task.whole_at, task.finding = datetime.fromisoformat(at), finding

    def recall_ended(
        self, publish_id: str, status: str, fail_reason: str, posts: list[str], privacy: str, at: str
    ) -> None:
        task = self.tasks.all[publish_id]
        task.status, task.fail_reason, task.ended_at = status, fail_reason, datetime.fromisoformat(at)
        self.tasks.forget_open(task)
        if privacy:
            task.post_info["privacy_level"] = privacy
        for post_id in posts:
            self.world.saw_id(post_id)
        self.tasks.publish(task, posts, task.ended_at)

    # --- what is told --------------------------------------------------------------------------------------------

    def shown(self) -> dict[str, Any]:
        return shown(self)

    def effects(self) -> dict[str, int]:
        return {"post_count": len(self.posts), "task_count": len(self.tasks.all)}

    def log_id(self) -> str:
        return f"{self.world.now():%Y%m%d%H%M%S}{secrets.token_hex(10).upper()}"

    def envelope(self, status: int, code: str, message: str, data: Any = None) -> Answer:
        """Shape A, of everything but tokens."""
        error = {"code": code, "message": message, "log_id": self.log_id()}
        return answer_json(status, {"data": {} if data is None else data, "error": error})

    def oauth_error(self, error: str, description: str) -> Answer:
        """Shape B, of the token endpoints."""
        facts = {"error": error, "error_description": description, "log_id": self.log_id()}
        return answer_json(self.oauth_error_status, facts)

    def http_error(self, status: int) -> Answer:
        code = "internal_error" if status >= 500 else "rate_limit_exceeded" if status == 429 else "invalid_params"
        return self.envelope(status, code, "Something is wrong. Please try again later.")

    def unauthorized_answer(self) -> Answer:
        return self.refusal_answer("", "access_token_invalid")

    def refusal_answer(self, endpoint: str, code: str) -> Answer:
        status, message = codes.words(endpoint, code)
        return self.envelope(status, code, message)

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        answer = self.refusal_answer("", "rate_limit_exceeded")
        if told_in == "retry-after":
            answer.headers.append(("retry-after", str(int(seconds))))
        return answer
