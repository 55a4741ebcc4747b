"""The access to an account at a network: refresh, identity and revocation. The subclasses say how the access begins.

None means that the network did not report the value. An absent refresh token never overwrites a stored one.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from socialpub.core.validation import to_label
from socialpub.providers.responses import NoAnswer, ProviderError, Rejected, read_lifetime

if TYPE_CHECKING:
    from socialpub.providers.http import Http  # slow to import, and not used by every command

MAX_TOKEN_LENGTH = 8192
"""The maximum length of a token, far above the length of real tokens."""
TOKEN = re.compile(r"[\x21-\x7e]+")
MAX_SCOPES, MAX_SCOPE_LENGTH = 100, 200
MAX_FACT_LENGTH = 2000
"""The maximum length of an account's id, of a URL and of a fact. A longer one is left out."""

SERVER = "server"
"""The key in the facts for the URL of the account's server, at networks with many servers."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a profile. `facts` are the network's data about the account (X: `subscription_type`)."""

    id: str
    """Unique at the network, across all of its servers. Empty before the network has identified the account."""
    username: str | None = None
    scopes: frozenset[str] = frozenset()
    """Granted scopes. An empty set means that they are unknown."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    profile_id: str | None = None
    """For commands in messages."""

    @property
    def server(self) -> str | None:
        """The URL of the account's server. None: the network has the same server for all accounts."""
        return self.facts.get(SERVER)


@dataclass(frozen=True, slots=True)
class Identity:
    """The account, in texts that a label and a row can have."""

    account_id: str
    username: str | None
    name: str | None
    picture_url: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.account_id) > MAX_FACT_LENGTH:
            raise NoAnswer("The response does not contain a usable id of the account.")
        for name in ("username", "name"):
            object.__setattr__(self, name, to_label(getattr(self, name) or "") or None)
        if len(self.picture_url or "") > MAX_FACT_LENGTH:
            object.__setattr__(self, "picture_url", None)
        facts = {name: fact for name, fact in self.facts.items() if len(str(fact)) <= MAX_FACT_LENGTH}
        object.__setattr__(self, "facts", facts)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a response. Raises `NoAnswer` for a token that cannot be one. Implausible lifetimes are unknown."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_in_seconds: int | None = None
    refresh_expires_in_seconds: int | None = None
    scopes: frozenset[str] | None = None
    identity: Identity | None = None
    """The account of the day, if a refresh reports it: the name or the server may have changed."""

    def __post_init__(self) -> None:
        for token in filter(None, (self.access_token, self.refresh_token)):
            if len(token) > MAX_TOKEN_LENGTH or not TOKEN.fullmatch(token):
                raise NoAnswer(
                    f"The response has a token of {len(token)} characters. A token has at most {MAX_TOKEN_LENGTH} "
                    "printable ASCII characters without spaces."
                )
        for name in ("expires_in_seconds", "refresh_expires_in_seconds"):
            object.__setattr__(self, name, read_lifetime(getattr(self, name)))
        scopes = {scope for scope in self.scopes or () if len(scope) <= MAX_SCOPE_LENGTH and TOKEN.fullmatch(scope)}
        object.__setattr__(self, "scopes", None if self.scopes is None else frozenset(sorted(scopes)[:MAX_SCOPES]))


class Auth(ABC):
    """The access to accounts at one network. Its methods raise `ProviderError`.

    A refused refresh raises `Rejected`, with `reauth` when the owner must connect again, and without it when the app's
    settings are wrong. A refresh token may work once, so the caller stores a new pair before using it.
    """

    refresh_early_seconds: ClassVar[int]
    """Refresh this long before the access token expires."""
    idle_refresh_seconds: ClassVar[int]
    """Refresh a pair that was unused for this long, before it expires."""
    revokes_every_grant: ClassVar[bool] = False
    """Whether revoking a token may also end the tokens of another connection of the same account."""

    @abstractmethod
    def refresh(self, http: "Http", account: Account, refresh_token: str) -> Tokens:
        """Exchange the refresh token for a new pair. After `NoAnswer`, it is unknown whether the token still works."""

    @abstractmethod
    def identify(self, http: "Http", account: Account, access_token: str) -> Identity:
        """Return the account that the token belongs to. `account` has the known data, at least the scopes."""

    @abstractmethod
    def revoke(self, http: "Http", account: Account, access_token: str, refresh_token: str | None) -> None:
        """Revoke the tokens. A token that the network no longer knows counts as revoked."""

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        """Return a sentence for each missing scope. Return nothing if the scopes are unknown."""
        return [sentence for scope, sentence in self._wanted_scopes().items() if scopes and scope not in scopes]

    @abstractmethod
    def can_publish(self, scopes: frozenset[str]) -> bool:
        """Return whether one way of publishing remains. An empty set means that the scopes are unknown."""

    @abstractmethod
    def _wanted_scopes(self) -> Mapping[str, str]:
        """Return a sentence about the effect of a missing scope, for each scope that publishing uses."""


# --- sign-in with fields ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignInField:
    """A value that the owner enters to sign in."""

    name: str
    """Of the option on the command line and of the form's field."""
    label: str
    secret: bool = False
    """Used for one call and never stored."""
    hint: str = ""
    """Sentences: what to enter, and where to find the value."""


@dataclass(eq=False, kw_only=True)
class SignInRefused(Rejected):
    """The network or the adapter refused the value of one field."""

    field: str
    remedy: str = ""
    """Sentences: what the owner does. Empty: correct the value."""


@dataclass(eq=False, kw_only=True)
class OtherServer(ProviderError):
    """The account is on a server that the owner has not confirmed. No secret value was sent to this server."""

    server: str
    """The name for the owner, who can confirm it: the URL, without `https://`."""


class SignIn(Auth):
    """A network that signs in with fields instead of a consent page."""

    fields: ClassVar[tuple[SignInField, ...]]

    @abstractmethod
    def sign_in(self, http: "Http", values: Mapping[str, str], server: str | None = None) -> tuple[Identity, Tokens]:
        """Sign in with a value for each field, and return the account and its tokens.

        `server`: the server that the owner has confirmed, as `OtherServer` names it. Secret values go only to this
        server, or without it only to that of the configuration. Raises `OtherServer` for an account of another server,
        and `SignInRefused` if the owner can correct a field.
        """
