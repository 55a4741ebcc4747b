"""One network's side of tokens, as accounts use it: consent, exchange, refresh, revocation, redirect addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from socialpub.providers.http import Http

# MERGED from providers/redirect_rules.py: Redirect addresses: which ones a network accepts. Each network has a tab


@dataclass(frozen=True, slots=True)
class RedirectRow:
    """One kind of redirect address that a network accepts."""

    takes: str
    """As the end of the sentence "X takes …"."""
    schemes: tuple[str, ...]
    source: str
    read_on: str
    """The month or day in which the source said so."""
    hosts: tuple[str, ...] = ()
    """The only hosts; empty: any host. The first one is what a remedy suggests."""
    other_hosts: tuple[str, ...] = ()
    """Hosts that do not fit, although `hosts` is empty."""
    needs_port: bool = False
    app: str = ""
    """The kind of app to register for such an address, where the network has several."""

    def fits(self, parts: SplitResult) -> bool:
        host = parts.hostname or ""
        return (
            parts.scheme in self.schemes
            and (not self.hosts or host in self.hosts)
            and host not in self.other_hosts
            and (parts.port is not None or not self.needs_port)
        )


@dataclass(frozen=True, slots=True)
class RedirectRules:
    """What one network accepts: the first row that fits counts."""

    rows: Sequence[RedirectRow]
    query_allowed: bool = True
    max_characters: int | None = None

    def find(self, address: str) -> RedirectRow | None:
        """Return the row that this address fits; None when the network does not accept it."""
        parts = urlsplit(address)
        if self.max_characters is not None and len(address) > self.max_characters:
            return None
        if "?" in address and not self.query_allowed:
            return None
        return next((row for row in self.rows if row.fits(parts)), None)

    def local(self, port: int, path: str) -> str | None:
        """Return an accepted address of the machine on which the browser runs; None when no row names such a host."""
        row = next((row for row in self.rows if row.hosts), None)
        return None if row is None else f"http://{row.hosts[0]}:{port}{path}"

    @property
    def sentence(self) -> str:
        """Everything that the network takes, as the end of a sentence."""
        found = " or ".join(row.takes for row in self.rows)
        extra = [] if self.query_allowed else ["no query"]
        if self.max_characters is not None:
            extra.append(f"at most {self.max_characters} characters")
        return f"{found}; {', '.join(extra)}" if extra else found


# MERGED from providers/oauth.py: One network's side of tokens, as accounts use it: consent, exchange, refresh, rev


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
