"""The memory of Pinterest: accounts and tokens."""

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

ALL_SCOPES = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")


@dataclass(slots=True)
class Account:
    id: str
    username: str
    business_name: str
    account_type: str = "BUSINESS"


class Pinterest(Network):
    name = "pinterest"
    endpoints = ("token", "revoke", "user_account")

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.accounts: dict[str, Account] = {}
        self.access_seconds = 2592000
        self.refresh_seconds = 5184000
        self.unapproved = False
        """The app is not approved: every call is 401 code 3."""
        self._keep(Account("1000000000000000001", "demo", "Demo"))

    def add_account(self, username: str, business_name: str | None = None) -> Account:
        account = Account(self.world.new_id(), username, business_name or username)
        self._keep(account)
        self.world.write("pinterest", "account", **{slot: getattr(account, slot) for slot in Account.__slots__})
        return account

    def _keep(self, account: Account) -> None:
        self.accounts[account.id] = account

    def account_named(self, username: str) -> Account | None:
        return next((one for one in list(self.accounts.values()) if one.username == username), None)

    def grant(
        self,
        account: Account | str,
        scopes: Iterable[str] = ALL_SCOPES,
        expires_in: float | None = None,
        client_id: str | None = None,
    ) -> dict[str, str]:
        """Tokens without a consent, in the shape that `import-profile` takes. A new username makes a new account."""
        if isinstance(account, str):
            account = self.account_named(account) or self.add_account(account)
        seconds = self.access_seconds if expires_in is None else expires_in
        token = self.issue(account.id, tuple(scopes), client_id, seconds=seconds)
        now = self.world.now()
        return {
            "accessToken": token.access,
            "refreshToken": token.refresh or "",
            "expiresAt": (now + timedelta(seconds=seconds)).isoformat(timespec="milliseconds"),
            "refreshExpiresAt": (now + timedelta(seconds=self.refresh_seconds)).isoformat(timespec="milliseconds"),
            "scope": " ".join(token.scopes),
        }

    def issue(
        self,
        account_id: str,
        scopes: tuple[str, ...],
        client_id: str | None,
        *,
        seconds: float | None = None,
        family: str | None = None,
    ) -> "Token":
        return self.tokens.issue(
            account_id,
            scopes,
            access=f"pina_{secrets.token_urlsafe(48)}",
            refresh=f"pinr_{secrets.token_urlsafe(48)}",
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds,
            client_id=client_id,
            family=family,
        )

    def recall_account(self, **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        self._keep(Account(**facts))

    # --- answers -------------------------------------------------------------------------------------------------

    def answer(self, status: int, data: Any) -> Answer:
        return answer_json(
            status,
            data,
            [
                ("x-pinterest-rid", secrets.token_hex(8)),
                ("x-ratelimit-limit", "1000, 1000;w=60"),
                ("x-ratelimit-remaining", "999"),
                ("x-ratelimit-reset", "60"),
            ],
        )

    def error(self, status: int, code: int, message: str) -> Answer:
        return self.answer(status, {"code": code, "message": message})

    def http_error(self, status: int) -> Answer:
        messages = {404: "Not found.", 405: "Method not allowed."}
        return self.error(status, 5 if status == 405 else status, messages.get(status, "Sorry, something went wrong."))

    def unauthorized_answer(self) -> Answer:
        return self.error(401, 2, "Authentication failed.")

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        answer = self.error(429, 8, "You have exceeded your rate limit. Try again later.")
        answer.headers = [header for header in answer.headers if not header[0].startswith("x-ratelimit")]
        if told_in in ("window", "day"):
            answer.headers += [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", str(int(seconds)))]
        elif told_in == "retry-after":
            answer.headers.append(("retry-after", str(int(seconds))))
        return answer
