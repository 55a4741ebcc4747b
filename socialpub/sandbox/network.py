"""What every network has: calls, scripted faults, accounts, apps and tokens.

How tokens look, how long they live and how errors are worded is each network's own.
"""

import functools
import re
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from socialpub.sandbox.faults import Chaos, ErrorReplies, Fault, FaultScript, take_fault
from socialpub.sandbox.memory import (
    AuthorizationCode,
    ByteCache,
    CallLog,
    SandboxApp,
    SandboxContext,
    Token,
    TokenStore,
    from_facts,
)
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest

COMMON_FIELDS: Mapping[str, str] = {"handle": r"[A-Za-z0-9_.]{1,30}", "name": r".{1,50}", "picture": r"\w{1,30}"}
"""The fields of every account that `change_account` may change, with the form of each value."""

CallerT = TypeVar("CallerT")

NetworkHandler = Callable[[Any, SandboxRequest], Reply]
UserHandler = Callable[[Any, SandboxRequest, Any], Reply]


@dataclass(frozen=True)
class ApiCaller(Generic[CallerT]):
    token: Token
    account: CallerT

    def may(self, *scopes: str) -> bool:
        return set(scopes) <= set(self.token.scopes)


def api_call(label: str, *scopes: str) -> Callable[[UserHandler], NetworkHandler]:
    """Make a handler of `(network, request, caller)` one of `(network, request)`. `label` names a limit of the network;
    its `admit` says which of the scopes are needed. Every response carries the headers that `admit` adds."""

    def wrap(handler: UserHandler) -> NetworkHandler:
        @functools.wraps(handler)
        def checked(network: Any, request: SandboxRequest) -> Reply:
            headers: Headers = []
            try:
                reply = handler(network, request, network.admit(request, label, scopes, headers))
            except Refusal as refusal:
                reply = refusal.reply
            kept = {name for name, _ in headers}
            reply.headers = [*(one for one in reply.headers if one[0] not in kept), *headers]
            return reply

        return checked

    return wrap


class SandboxAccount(Protocol):
    """The common fields of an account. Each network has its own dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    username: str
    picture: str
    """The avatar is drawn from this word; empty: from the username."""

    @property
    def id(self) -> str: ...


AccountT = TypeVar("AccountT", bound=SandboxAccount)


class SandboxNetwork(CallLog, ErrorReplies, Generic[AccountT]):
    label: ClassVar[str]
    """The display name of the network."""
    endpoints: ClassVar[tuple[str, ...]]
    default_scopes: ClassVar[tuple[str, ...]]
    """The scopes of `grant` by default."""
    scope_mark: ClassVar[str] = " "
    """The separator between the scopes of `grant`."""
    reveals_refresh_expiry: ClassVar[bool] = True
    account_kind: ClassVar[type[Any]]
    common_fields: ClassVar[Mapping[str, str]] = COMMON_FIELDS
    account_fields: ClassVar[tuple[str, ...]] = ()
    """The other fields that `change_account` may change."""
    name_field: ClassVar[str] = "name"
    account_choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The only values of some of these fields."""
    account_entry: ClassVar[str] = "account"
    """The kind of journal entries about accounts."""

    code_seconds: int
    access_seconds: int
    refresh_seconds: int

    def __init__(self, context: SandboxContext) -> None:
        super().__init__()
        self.context = context
        self.clock_skew_seconds = 0.0
        """The difference between the network's clock and the world's clock. Negative: the network's clock is behind."""
        self.tokens = TokenStore(self, self.write)
        self.codes: dict[str, AuthorizationCode] = {}
        self.accounts: dict[str, AccountT] = {}
        """By id."""
        self.apps: dict[str, SandboxApp] = {}
        self.cache = ByteCache()
        """Images and videos by id, for the pages. And the pieces of uploads that are not whole."""
        self.sends_date = True
        """Responses carry a `Date`."""
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}
        self._chaos: Chaos | None = None

    # --- time, ids, journal --------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.context.clock.now() + timedelta(seconds=self.clock_skew_seconds)

    def timestamp(self) -> float:
        return self.now().timestamp()

    def seconds_since(self, at: datetime) -> float:
        return (self.now() - at).total_seconds()

    def new_id(self) -> str:
        return self.context.ids.new()

    def reserve_id(self, used: str) -> None:
        """Record an id from before a restart."""
        self.context.ids.reserve(used)

    def write(self, kind: str, **facts: Any) -> None:
        self.context.journal.write(self.name, kind, **facts)

    def replay(self, kind: str, facts: dict[str, Any]) -> None:
        """Pass one line of the journal to `replay_<kind>` after a restart. Unknown kinds are skipped."""
        replay = getattr(self, f"replay_{kind}", None) or getattr(self.tokens, f"replay_{kind}", None)
        if replay is not None:
            replay(**facts)

    # --- faults --------------------------------------------------------------------------------------------------

    def next(self, endpoint: str) -> FaultScript:
        """Script what the next call of `endpoint` meets. Several scripts take effect in their order."""
        if endpoint not in self._faults:
            raise ValueError(f"{self.name} has no endpoint {endpoint!r} (known: {', '.join(self.endpoints)})")
        return FaultScript(self._faults[endpoint], self, endpoint)

    def chaos(self, seed: int, rate: float) -> None:
        """Fail a share `rate` of the calls from now on, with the random `seed`."""
        self._chaos = Chaos(self, seed, rate)

    def calm(self) -> None:
        self._chaos = None
        for queue in self._faults.values():
            queue.clear()

    def fault_for(self, endpoint: str) -> Fault | None:
        fault = take_fault(self._faults[endpoint])
        if fault is None and self._chaos is not None:
            fault = self._chaos.draw(endpoint)
        return fault

    # --- what each network shows ---------------------------------------------------------------------------------

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """Return the number of posts, pins and the like."""

    @abstractmethod
    def view(self) -> dict[str, Any]:
        """Return the memory as JSON data, for the control API."""

    @abstractmethod
    def admit(
        self, request: SandboxRequest, label: str, scopes: tuple[str, ...], headers: Headers
    ) -> ApiCaller[AccountT]:
        """Return the caller and count the call. Raise Refusal. Add headers to the response, even before a Refusal."""

    async def before_view(self) -> None:
        """Bring the memory up to date before it is shown."""

    # --- apps and accounts ---------------------------------------------------------------------------------------

    def add_app(self, client_id: str, client_secret: str | None = "", redirect_uris: Iterable[str] = ()) -> None:
        """Register an app. From then on, its secret and addresses are checked. None as secret: a public client."""
        self.apps[client_id] = SandboxApp(client_id, client_secret, tuple(redirect_uris))

    def find_app(self, client_id: str) -> SandboxApp | None:
        """Return the app with this id. Every id has an app, even if it is not registered."""
        return self.apps.get(client_id) or (SandboxApp(client_id) if client_id else None)

    @abstractmethod
    def add_account(self, username: str) -> AccountT:
        """Create an account. Raise ValueError for a username that exists."""

    def account_named(self, username: str) -> AccountT | None:
        """Return the account. The username is not case-sensitive."""
        wanted = username.lower()
        return next((one for one in list(self.accounts.values()) if one.username.lower() == wanted), None)

    def account_of(self, token: Token) -> AccountT | None:
        return self.accounts.get(token.account_id)

    def existing_account(self, username: str) -> AccountT:
        """Return the account. Raise ValueError for an unknown username."""
        account = self.account_named(username)
        if account is None:
            raise ValueError(f"no such account: {username}")
        return account

    def refuse_taken(self, username: str) -> None:
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")

    def store_account(self, account: AccountT) -> AccountT:
        """Keep a new or changed account across restarts."""
        self.accounts[account.id] = account
        self.write(self.account_entry, **asdict(account))
        return account

    def replay_account(self, **facts: Any) -> None:
        account: AccountT = from_facts(self.account_kind, facts)
        self.reserve_id(account.id)
        self.accounts[account.id] = account

    def change_account(self, username: str, **changes: Any) -> AccountT:
        """Change the handle, name or picture of an account, or a setting such as X's `subscription_type`, TikTok's
        `private` or Pinterest's `account_type`."""
        account = self.existing_account(username)
        known = (*self.common_fields, *self.account_fields)
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise ValueError(f"no such field: {', '.join(unknown)} (known: {', '.join(known)})")
        for name, value in changes.items():
            choices = self.account_choices.get(name)
            if choices is not None and value not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}, not {value!r}")
            form = self.common_fields.get(name)
            if form is not None and (not isinstance(value, str) or not re.fullmatch(form, value)):
                raise ValueError(f"{name} cannot be {value!r}")
        handle = changes.pop("handle", username)
        if handle != username:
            self.refuse_taken(handle)
            # A new handle does not change the picture.
            account.username, account.picture = handle, account.picture or username
        for name, value in changes.items():
            setattr(account, self.name_field if name == "name" else name, value)
        return self.store_account(account)

    # --- tokens --------------------------------------------------------------------------------------------------

    @abstractmethod
    def new_token_pair(
        self, scopes: tuple[str, ...], account_id: str, expires_at: tuple[float, float]
    ) -> tuple[str, str | None]:
        """Return an access token, and a refresh token if these scopes come with one. `expires_at` are their ends."""

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
    ) -> Token:
        """Issue a pair. `refresh` is a refresh token that continues to work; None makes a new one."""
        now = self.timestamp()
        expires_at = (
            now + (self.access_seconds if seconds is None else seconds),
            now + (self.refresh_seconds if refresh_seconds is None else refresh_seconds),
        )
        access, new_refresh = self.new_token_pair(scopes, account_id, expires_at)
        token = Token(
            access,
            refresh or new_refresh,
            account_id,
            scopes,
            client_id,
            family or secrets.token_hex(8),
            *expires_at,
        )
        self.tokens.add(token)
        return token

    def grant(
        self,
        account: AccountT | str,
        scopes: Iterable[str] | None = None,
        expires_in: float | None = None,
        client_id: str | None = None,
    ) -> dict[str, str]:
        """Return tokens without a consent, in the shape that `import-profile` accepts. A new username makes a new
        account. Without `client_id`, any app may refresh them."""
        if isinstance(account, str):
            account = self.account_named(account) or self.add_account(account)
        seconds = self.access_seconds if expires_in is None else expires_in
        token = self.issue(
            account.id, tuple(self.default_scopes if scopes is None else scopes), client_id, seconds=seconds
        )
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
        """Let the account withdraw the app's permission: all its tokens end."""
        self.tokens.end_all(self.existing_account(username).id)
