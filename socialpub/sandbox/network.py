"""What every network has: calls, scripted faults, accounts, apps and tokens."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from socialpub.sandbox.faults import Chaos, Fault, FaultScript, take_fault
from socialpub.sandbox.memory import CallLog, SandboxContext
from socialpub.sandbox.messages import Reply
from socialpub.sandbox.tokens import AuthorizationCodes, SandboxApp, Token, TokenStore

# MERGED from sandbox/network.py: What every network has: its calls, its scripted faults, its share of the world's


class SandboxNetwork(CallLog, ABC):
    name: ClassVar[str]
    endpoints: ClassVar[tuple[str, ...]]

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context.clock)
        self.context = context
        self.tokens = TokenStore(context.clock, self.write)
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}
        self._chaos: Chaos | None = None
        self.sends_date = True
        """Answers carry a `Date`."""

    # --- the world's ---------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.context.clock.now()

    @property
    def clock_skew_seconds(self) -> float:
        """How far the network's clock is ahead of everybody else's; below zero: behind."""
        return self.context.clock.skew_seconds

    @clock_skew_seconds.setter
    def clock_skew_seconds(self, seconds: float) -> None:
        self.context.clock.skew_seconds = seconds

    def timestamp(self) -> float:
        """Now, in Unix seconds."""
        return self.now().timestamp()

    def seconds_since(self, at: datetime) -> float:
        return (self.now() - at).total_seconds()

    def new_id(self) -> str:
        return self.context.ids.new()

    def reserve_id(self, used: str) -> None:
        """An id from before a restart."""
        self.context.ids.reserve(used)

    def write(self, kind: str, **facts: Any) -> None:
        """One line of the journal."""
        self.context.journal.write(self.name, kind, **facts)

    def replay(self, kind: str, facts: dict[str, Any]) -> None:
        """One line of the journal, read after a restart; `replay_<kind>` takes it. Unknown kinds are skipped."""
        replay = getattr(self, f"replay_{kind}", None) or getattr(self.tokens, f"replay_{kind}", None)
        if replay is not None:
            replay(**facts)

    # --- faults --------------------------------------------------------------------------------------------------

    def next(self, endpoint: str) -> FaultScript:
        """Script what the next call of `endpoint` meets; several scripts wait their turn in order."""
        self._refuse_unknown([endpoint])
        return FaultScript(self._faults[endpoint], self, endpoint)

    def chaos(
        self,
        seed: int,
        rate: float,
        *,
        kinds: Iterable[str] | None = None,
        endpoints: Iterable[str] | None = None,
    ) -> None:
        """From now on a share `rate` of the calls fails, drawn by `seed`. The consent page is left out unless named."""
        chosen = [one for one in self.endpoints if one != "authorize"] if endpoints is None else list(endpoints)
        self._refuse_unknown(chosen)
        self._chaos = Chaos(self, seed, rate, kinds, chosen)

    def calm(self) -> None:
        """No chaos and no scripted fault any more."""
        self._chaos = None
        for queue in self._faults.values():
            queue.clear()

    def fault_for(self, endpoint: str) -> Fault | None:
        fault = take_fault(self._faults[endpoint])
        if fault is None and self._chaos is not None:
            fault = self._chaos.draw(endpoint)
        return fault

    def _refuse_unknown(self, endpoints: list[str]) -> None:
        unknown = [repr(one) for one in endpoints if one not in self._faults]
        if unknown:
            raise ValueError(f"{self.name} has no endpoint {', '.join(unknown)} (known: {', '.join(self.endpoints)})")

    # --- what each network words in its own way ------------------------------------------------------------------

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """How many posts, pins and the like there are."""

    @abstractmethod
    def http_error(self, status: int) -> Reply: ...

    @abstractmethod
    def unauthorized_reply(self) -> Reply: ...

    @abstractmethod
    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply: ...

    def credits_reply(self, shape: int) -> Reply:  # noqa: ARG002
        raise ValueError(f"{self.name} sells no credits")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002
        raise ValueError(f"{self.name} has no refusal named {code!r}")


# MERGED from sandbox/oauth.py: Accounts, apps and tokens: what all networks need before somebody may call them.

COMMON_FIELDS = {"handle": r"[A-Za-z0-9_.]{1,30}", "name": r".{1,50}", "picture": r"\w{1,30}"}
"""What every account has that can be changed, and how it is written."""

CallerT = TypeVar("CallerT")
AppT = TypeVar("AppT", bound=SandboxApp)


@dataclass
class OAuthSwitches:
    """How the OAuth of a network behaves; each network has its own defaults."""

    strict_apps: bool = False
    """Refuse client ids that `add_app` does not know; else any id and secret will do."""
    auto_approve: str = ""
    """A username: the consent page agrees for it at once."""
    auto_scopes: str = ""
    """With `auto_approve`: only these scopes are granted (comma-separated); empty: all that are asked for."""
    auto_deny: bool = False
    """The consent page declines at once."""
    code_seconds: int = 600
    access_seconds: int = 3600
    refresh_seconds: int = 365 * 86400


@dataclass(frozen=True)
class ApiCaller(Generic[CallerT]):
    """Who makes a call of a network's API."""

    token: Token
    account: CallerT

    def may(self, *scopes: str) -> bool:
        """It was given all of these."""
        return set(scopes) <= set(self.token.scopes)


class SandboxAccount(Protocol):
    """A dataclass of each network's own."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    username: str
    picture: str

    @property
    def id(self) -> str: ...


AccountT = TypeVar("AccountT", bound=SandboxAccount)


class OAuthNetwork(SandboxNetwork, OAuthSwitches, Generic[AccountT, AppT]):
    default_scopes: ClassVar[tuple[str, ...]]
    """What `grant` gives unless scopes are named."""
    scope_mark: ClassVar[str] = " "
    """Between the scopes of `grant`."""
    reveals_refresh_expiry: ClassVar[bool] = True
    account_fields: ClassVar[tuple[str, ...]] = ()
    """What `change_account` may change, beside `handle`, `name` and `picture`, which all accounts have."""
    name_field: ClassVar[str] = "name"
    account_choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The only values of some of these fields."""
    account_entry: ClassVar[str] = "account"
    """The kind of the journal's entries about accounts."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.accounts: dict[str, AccountT] = {}
        """By id."""
        self.apps: dict[str, AppT] = {}
        self.codes = AuthorizationCodes(context.clock)

    # --- apps ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def unregistered_app(self, client_id: str) -> AppT:
        """What an id that nobody registered is taken for."""

    def find_app(self, client_id: str) -> AppT | None:
        """The app with this id; any id is one, unless `strict_apps`."""
        app = self.apps.get(client_id)
        if app is None and client_id and not self.strict_apps:
            return self.unregistered_app(client_id)
        return app

    # --- accounts ------------------------------------------------------------------------------------------------

    @abstractmethod
    def add_account(self, username: str) -> AccountT:
        """A new account; a username that exists is ValueError."""

    def account_named(self, username: str) -> AccountT | None:
        return next((one for one in list(self.accounts.values()) if one.username == username), None)

    def account_of(self, token: Token) -> AccountT | None:
        return self.accounts.get(token.account_id)

    def existing_account(self, username: str) -> AccountT:
        """The account; an unknown username is ValueError."""
        account = self.account_named(username)
        if account is None:
            raise ValueError(f"no such account: {username}")
        return account

    def refuse_taken(self, username: str) -> None:
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")

    def store_account(self, account: AccountT) -> AccountT:
        """Keep an account, new or changed, over a restart too."""
        self.accounts[account.id] = account
        self.write(self.account_entry, **asdict(account))
        return account

    def change_account(self, username: str, **changes: Any) -> AccountT:
        """Change an account: its `handle`, `name`, `picture` (a word from which the picture is drawn), or settings such
        as X's `subscription_type`, TikTok's `private` or Pinterest's `account_type`."""
        account = self.existing_account(username)
        known = (*COMMON_FIELDS, *self.account_fields)
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise ValueError(f"no such field: {', '.join(unknown)} (known: {', '.join(known)})")
        for name, value in changes.items():
            choices = self.account_choices.get(name)
            if choices is not None and value not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}, not {value!r}")
            if name in COMMON_FIELDS and (not isinstance(value, str) or not re.fullmatch(COMMON_FIELDS[name], value)):
                raise ValueError(f"{name} cannot be {value!r}")
        handle = changes.pop("handle", username)
        if handle != username:
            self.refuse_taken(handle)
            # A new handle leaves the picture as it is.
            account.username, account.picture = handle, account.picture or username
        for name, value in changes.items():
            setattr(account, self.name_field if name == "name" else name, value)
        return self.store_account(account)

    # --- tokens --------------------------------------------------------------------------------------------------

    @abstractmethod
    def new_token_pair(self, scopes: tuple[str, ...], *, sandbox: bool) -> tuple[str, str | None]:
        """The texts of an access token and its refresh token, if these scopes come with one."""

    def issue(
        self,
        account_id: str,
        scopes: tuple[str, ...],
        client_id: str | None,
        *,
        seconds: float | None = None,
        refresh: str | None = None,
        refresh_seconds: float | None = None,
        family: str | None = None,
        sandbox: bool = False,
    ) -> Token:
        """`refresh`: a refresh token that goes on working; None: a new one. `sandbox`: of Pinterest's own sandbox."""
        access, new_refresh = self.new_token_pair(scopes, sandbox=sandbox)
        return self.tokens.issue(
            account_id,
            scopes,
            access=access,
            refresh=refresh or new_refresh,
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds if refresh_seconds is None else refresh_seconds,
            client_id=client_id,
            family=family,
        )

    def grant(
        self,
        account: AccountT | str,
        scopes: Iterable[str] | None = None,
        expires_in: float | None = None,
        client_id: str | None = None,
        *,
        sandbox: bool = False,
    ) -> dict[str, str]:
        """Tokens without a consent, in the shape that `import-profile` takes. A new username makes a new account.

        Without `client_id` any app may refresh them."""
        if isinstance(account, str):
            account = self.account_named(account) or self.add_account(account)
        seconds = self.access_seconds if expires_in is None else expires_in
        granted_scopes = self.default_scopes if scopes is None else tuple(scopes)
        token = self.issue(account.id, granted_scopes, client_id, seconds=seconds, sandbox=sandbox)
        granted = {
            "accessToken": token.access,
            "expiresAt": self._instant_in(seconds),
            "scope": self.scope_mark.join(token.scopes),
        }
        if token.refresh is not None:
            granted["refreshToken"] = token.refresh
            if self.reveals_refresh_expiry:
                granted["refreshExpiresAt"] = self._instant_in(self.refresh_seconds)
        return granted

    def _instant_in(self, seconds: float) -> str:
        return (self.now() + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

    def remove_access(self, username: str) -> None:
        """The account takes the app's permission back: all its tokens die."""
        self.tokens.end_all(self.existing_account(username).id)
