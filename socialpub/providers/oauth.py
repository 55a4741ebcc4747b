"""One network's side of tokens, as accounts use it: consent, exchange, refresh, revocation.

`None` in an answer means that the network did not say; an absent refresh token never overwrites a stored one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from socialpub.providers.http import Http
from socialpub.providers.redirect_rules import RedirectRules


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose token it is."""

    account_id: str
    username: str | None
    name: str | None
    picture_url: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A token answer."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_in_seconds: int | None = None
    refresh_expires_in_seconds: int | None = None
    scopes: frozenset[str] | None = None


class OAuth(Protocol):
    """One network's side of tokens. Errors: `errors.py`; a refused refresh raises `Rejected`, with `reauth` set when
    the owner has to consent again."""

    @property
    def refresh_early_seconds(self) -> int:
        """Refresh when the access token has less than this left."""
        ...

    @property
    def idle_refresh_seconds(self) -> int:
        """Refresh a pair that nobody has used for this long, before the network forgets it."""
        ...

    @property
    def revokes_every_grant(self) -> bool:
        """Whether giving one token back may end what another consent of the same account brought."""
        ...

    @property
    def redirect_rules(self) -> RedirectRules:
        """Which redirect addresses the network accepts."""
        ...

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """The consent page for one connection. `verifier` is PKCE's, 43 to 128 characters."""
        ...

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:
        """Trade the code of a consent for tokens, once and at once. `redirect_uri` is the very one of the consent.

        Raises `Rejected` with `reauth` when the owner must begin again, without it when the app's settings are wrong.
        """
        ...

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity: ...

    def refresh(self, http: Http, refresh_token: str) -> Tokens: ...

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None: ...

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        """What this grant cannot do, as sentences; empty when nothing is missing or nothing is known."""
        ...

    def can_publish(self, scopes: frozenset[str]) -> bool:
        """Whether one way of publishing remains."""
        ...
