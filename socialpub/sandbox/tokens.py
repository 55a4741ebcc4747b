"""Access and refresh tokens, with rotation.

A refresh token works once. Every pair that grew out of one consent is a family, and ends together when it is revoked.
"""

import secrets
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from socialpub.sandbox.context import SandboxClock


class WriteJournal(Protocol):
    def __call__(self, kind: str, **facts: Any) -> None: ...


@dataclass(slots=True)
class Token:
    """One pair. Times are Unix seconds."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    account_id: str
    scopes: tuple[str, ...]
    client_id: str | None
    """None: any app may refresh it (granted by hand)."""
    family: str
    expires_at: float
    refresh_expires_at: float
    app_only: bool = False
    spent: bool = False
    """Its refresh token was used."""
    dead: bool = False
    """Its access token no longer works, and neither does its refresh token."""


class TokenStore:
    def __init__(self, clock: SandboxClock, write: WriteJournal) -> None:
        self._clock = clock
        self._write = write
        self._by_access: dict[str, Token] = {}
        self._by_refresh: dict[str, Token] = {}

    def issue(
        self,
        account_id: str,
        scopes: tuple[str, ...],
        *,
        access: str,
        refresh: str | None,
        seconds: float,
        refresh_seconds: float,
        client_id: str | None = None,
        family: str | None = None,
        app_only: bool = False,
    ) -> Token:
        now = self._now()
        token = Token(
            access,
            refresh,
            account_id,
            scopes,
            client_id,
            family or secrets.token_hex(8),
            now + seconds,
            now + refresh_seconds,
            app_only,
        )
        self._keep(token)
        self._write("token", **asdict(token))
        return token

    def _keep(self, token: Token) -> None:
        self._by_access[token.access] = token
        if token.refresh is not None:
            self._by_refresh[token.refresh] = token

    def bearer(self, access: str | None) -> Token | None:
        """The token an API call carries, while it works."""
        token = self._by_access.get(access or "")
        if token is None or token.dead or self._now() >= token.expires_at:
            return None
        return token

    def by_refresh(self, refresh: str) -> Token | None:
        """Also a spent or dead one."""
        return self._by_refresh.get(refresh)

    def may_refresh(self, token: Token, client_id: str) -> bool:
        alive = not token.spent and not token.dead and self._now() < token.refresh_expires_at
        return alive and token.client_id in (None, client_id)

    def spend(self, token: Token, *, access_survives: bool) -> None:
        self.replay_spent(token.access, access_survives)
        self._write("spent", access=token.access, access_survives=access_survives)

    def end_family(self, family: str) -> None:
        self.replay_family_ended(family)
        self._write("family_ended", family=family)

    def revoke(self, text: str, client_id: str | None = None) -> bool:
        """Ends the family of an access or refresh token; False when no such token is this app's."""
        token = self._by_access.get(text) or self._by_refresh.get(text)
        if token is None or (client_id is not None and token.client_id not in (None, client_id)):
            return False
        self.end_family(token.family)
        return True

    def end_all(self, account_id: str) -> None:
        """Ends every family of an account."""
        for token in self.of(account_id):
            if not token.dead:
                self.end_family(token.family)

    def expire(self, account_id: str) -> None:
        """The account's access tokens run out now; its refresh tokens still work."""
        for token in list(self._by_access.values()):
            if token.account_id == account_id:
                token.expires_at = 0

    def of(self, account_id: str) -> list[Token]:
        """All pairs of an account, oldest first."""
        return [token for token in list(self._by_access.values()) if token.account_id == account_id]

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_token(self, **facts: Any) -> None:
        facts["scopes"] = tuple(facts["scopes"])
        self._keep(Token(**facts))

    def replay_spent(self, access: str, access_survives: bool) -> None:
        token = self._by_access.get(access)
        if token is not None:
            token.spent = True
            if not access_survives:
                token.expires_at = 0

    def replay_family_ended(self, family: str) -> None:
        for token in list(self._by_access.values()):
            if token.family == family:
                token.dead = True
