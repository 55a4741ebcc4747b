"""The memory of TikTok: users and tokens."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, answer_json
from socialpub.sandbox.network import Network

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.world import World

ALL_SCOPES = ("user.info.basic", "video.publish", "video.upload")


@dataclass(slots=True)
class User:
    open_id: str
    union_id: str
    username: str
    display_name: str


class TikTok(Network):
    name = "tiktok"
    endpoints = ("token", "revoke", "user_info")

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.users: dict[str, User] = {}
        """By open_id."""
        self.access_seconds = 86400
        self.refresh_seconds = 365 * 86400
        self.oauth_error_status = 400
        """400 or 200: the documentation does not say."""
        self.rotates = True
        """A refresh answers with a new refresh token and ends the old one."""
        self._keep(User("7f0c1e52-demo-4a11-9b7e-000000000001", "u-demo-1", "demo", "Demo"))

    def add_user(self, username: str, display_name: str | None = None) -> User:
        number = self.world.new_id()
        user = User(f"{secrets.token_hex(4)}-{number}", f"u-{number}", username, display_name or username)
        self._keep(user)
        self.world.write("tiktok", "user", **{slot: getattr(user, slot) for slot in User.__slots__})
        return user

    def _keep(self, user: User) -> None:
        self.users[user.open_id] = user

    def user_named(self, username: str) -> User | None:
        return next((user for user in list(self.users.values()) if user.username == username), None)

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
        family: str | None = None,
    ) -> "Token":
        return self.tokens.issue(
            open_id,
            scopes,
            access=f"act.{secrets.token_urlsafe(48)}",
            refresh=refresh or f"rft.{secrets.token_urlsafe(48)}",
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds,
            client_id=client_key,
            family=family,
        )

    def recall_user(self, **facts: Any) -> None:
        self._keep(User(**facts))

    # --- answers -------------------------------------------------------------------------------------------------

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
        return self.envelope(401, "access_token_invalid", "The access token is invalid or not found in the request.")

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        answer = self.envelope(429, "rate_limit_exceeded", "The API rate limit was exceeded.")
        if told_in == "retry-after":
            answer.headers.append(("retry-after", str(int(seconds))))
        return answer
