"""Apps, authorization codes and tokens: what a network needs before an app may call it."""

import base64
import binascii
import secrets
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from socialpub.sandbox.memory import SandboxClock, from_facts


@dataclass(slots=True)
class SandboxApp:
    client_id: str
    client_secret: str | None = field(default="", repr=False)
    """Empty: any. None: a public client, which has none."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that the network allows."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.client_id

    def accepts(self, secret: str) -> bool:
        return bool(secret) and self.client_secret in ("", secret)


def basic_credentials(header: str) -> tuple[str, str] | None:
    """Return id and secret of an `Authorization: Basic` header, or None for any other header."""
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = decoded.partition(":")
    return (client_id, secret) if scheme.lower() == "basic" and colon else None


@dataclass(slots=True)
class AuthorizationCode:
    """What an account agreed to, until the app exchanges it for tokens."""

    client_id: str
    redirect_uri: str
    account_id: str
    scopes: tuple[str, ...]
    expires_at: float
    """Unix seconds."""
    challenge: str = ""
    """Empty: the app sent none."""
    method: str = ""
    """Of the challenge: `S256` or `plain`."""


class AuthorizationCodes:
    """Each code works once."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._codes: dict[str, AuthorizationCode] = {}

    def __getitem__(self, text: str) -> AuthorizationCode:
        return self._codes[text]

    def add(self, text: str, code: AuthorizationCode) -> None:
        self._codes[text] = code

    def redeem(self, text: str, client_id: str) -> AuthorizationCode | None:
        """Return the code if it is valid and belongs to this app. Any call uses the code up."""
        code = self._codes.pop(text, None)
        if code is None or code.client_id != client_id or self._clock.now().timestamp() >= code.expires_at:
            return None
        return code


class WriteJournal(Protocol):
    def __call__(self, kind: str, **facts: Any) -> None: ...


@dataclass(slots=True)
class Token:
    """A pair of an access and a refresh token. Times are Unix seconds."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    account_id: str
    scopes: tuple[str, ...]
    client_id: str | None
    """None: any app may refresh it (granted by hand)."""
    family: str
    expires_at: float
    refresh_expires_at: float
    spent: bool = False
    """Its refresh token was used."""
    dead: bool = False
    """Neither of its tokens works any more."""


class TokenStore:
    """A refresh token works once. The pairs of one consent are a family, and a revocation ends all of them."""

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
        )
        self._keep(token)
        self._write("token", **asdict(token))
        return token

    def _keep(self, token: Token) -> None:
        self._by_access[token.access] = token
        if token.refresh is not None:
            self._by_refresh[token.refresh] = token

    def bearer(self, access: str | None) -> Token | None:
        """Return the token of an API call while it works."""
        token = self._by_access.get(access or "")
        if token is None or token.dead or self._now() >= token.expires_at:
            return None
        return token

    def by_refresh(self, refresh: str) -> Token | None:
        """Return the pair, even a spent or dead one."""
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
        """End the family of an access or refresh token. Return False when this app has no such token."""
        token = self._by_access.get(text) or self._by_refresh.get(text)
        if token is None or (client_id is not None and token.client_id not in (None, client_id)):
            return False
        self.end_family(token.family)
        return True

    def end_all(self, account_id: str) -> None:
        """End every family of an account."""
        for token in self.of(account_id):
            if not token.dead:
                self.end_family(token.family)

    def expire(self, account_id: str) -> None:
        """End the account's access tokens now. Its refresh tokens still work."""
        for token in list(self._by_access.values()):
            if token.account_id == account_id:
                token.expires_at = 0

    def of(self, account_id: str) -> list[Token]:
        """Return all pairs of an account, oldest first."""
        return [token for token in list(self._by_access.values()) if token.account_id == account_id]

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_token(self, **facts: Any) -> None:
        self._keep(from_facts(Token, {**facts, "scopes": tuple(facts["scopes"])}))

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
