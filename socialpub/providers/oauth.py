"""OAuth at a network: consent, exchange, refresh, and the accepted redirect URLs."""

import base64
import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from socialpub.providers.auth import Account, Auth, Tokens
from socialpub.providers.http import Http
from socialpub.providers.responses import text_at


def read_tokens(found: Mapping[str, Any], refresh_expires_in: str = "refresh_expires_in") -> Tokens | None:
    """Return the tokens of a response, or None without an access token. Spaces or commas separate its scopes."""
    access_token, scope = text_at(found, "access_token"), text_at(found, "scope")
    if access_token is None:
        return None
    return Tokens(
        access_token,
        text_at(found, "refresh_token"),
        found.get("expires_in"),
        found.get(refresh_expires_in),
        frozenset(scope.replace(",", " ").split()) if scope else None,
    )


def pkce_challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


# --- redirect URLs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RedirectRow:
    """A kind of redirect URL that a network accepts, with the source and the date."""

    accepts: str
    """The end of the sentence "X accepts …"."""
    schemes: tuple[str, ...]
    source: str
    read_on: str
    """The month or day of the source."""
    hosts: tuple[str, ...] = ()
    """The only hosts. Empty: any host. A remedy suggests the first."""
    other_hosts: tuple[str, ...] = ()
    """Excluded hosts."""
    needs_port: bool = False
    app: str = ""
    """The kind of app to register for such a URL, if the network has several."""

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
    """The redirect URLs that one network accepts. The first matching row counts. Others are undocumented or refused."""

    rows: Sequence[RedirectRow]
    query_allowed: bool = True
    max_characters: int | None = None

    def find(self, address: str) -> RedirectRow | None:
        parts = urlsplit(address)
        if self.max_characters is not None and len(address) > self.max_characters:
            return None
        if "?" in address and not self.query_allowed:
            return None
        return next((row for row in self.rows if row.fits(parts)), None)

    def local(self, port: int, path: str) -> str | None:
        """Return an accepted URL on the host of the browser, or None if the rows do not contain such a host."""
        row = next((row for row in self.rows if row.hosts), None)
        return None if row is None else f"http://{row.hosts[0]}:{port}{path}"

    @property
    def sentence(self) -> str:
        accepted = " or ".join(row.accepts for row in self.rows)
        extra = [] if self.query_allowed else ["no query"]
        if self.max_characters is not None:
            extra.append(f"at most {self.max_characters} characters")
        return f"{accepted}; {', '.join(extra)}" if extra else accepted


# --- the calls -------------------------------------------------------------------------------------------------------


class OAuth(Auth):
    """A network with a consent page. A refused exchange raises `Rejected`, as a refused refresh does."""

    redirect_rules: ClassVar[RedirectRules]

    @abstractmethod
    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """Return the consent page for one connection. `verifier` is for PKCE, with 43 to 128 characters."""

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:
        """Exchange the code of a consent for tokens. `redirect_uri` is the redirect URL of the consent."""
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        return self._request_tokens(http, {**fields, **self._exchange_fields(verifier)})

    def refresh(self, http: Http, account: Account, refresh_token: str) -> Tokens:  # noqa: ARG002
        return self._request_tokens(http, {"grant_type": "refresh_token", "refresh_token": refresh_token})

    @abstractmethod
    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:
        """Return the fields of an exchange that RFC 6749 does not have."""

    @abstractmethod
    def _request_tokens(self, http: Http, fields: Mapping[str, str]) -> Tokens:
        """Call the token endpoint. Raises the error of a response without tokens."""
