"""What every network has: calls, scripted faults, accounts, apps and tokens.

How tokens look, how long they live and how errors are worded is each network's own.
"""

import functools
import math
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from socialpub.sandbox.faults import Fault, FaultScript, take_fault
from socialpub.sandbox.memory import (
    AuthorizationCode,
    ByteCache,
    CallLog,
    FixedWindow,
    FixedWindows,
    SandboxApp,
    SandboxContext,
    Table,
    Token,
    TokenStore,
)
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest

COMMON_FIELDS: Mapping[str, str] = {"handle": r"[A-Za-z0-9_.]{1,30}", "name": r".{1,50}", "picture": r"\w{1,30}"}
"""The fields of every account that `change_account` may change, with the form of each value."""

T = TypeVar("T")
CallerT = TypeVar("CallerT")

NetworkHandler = Callable[[Any, SandboxRequest], Reply]
UserHandler = Callable[[Any, SandboxRequest, Any], Reply]


class ApiCaller(NamedTuple, Generic[CallerT]):
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
            return reply.with_headers(headers)

        return checked

    return wrap


class SandboxAccount(Protocol):
    """The common fields of an account. Each network has its own dataclass."""

    username: str
    picture: str
    """The avatar is drawn from this word; empty: from the username."""

    @property
    def id(self) -> str: ...


AccountT = TypeVar("AccountT", bound=SandboxAccount)


class SandboxNetwork(CallLog, ABC, Generic[AccountT]):
    name: ClassVar[str]
    errors: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """The named refusals: status, further facts, message."""
    unauthorized_code: ClassVar[str]
    """The refusal of an access token."""
    limited_code: ClassVar[str]
    """The refusal of one call too many."""
    label: ClassVar[str]
    """The display name of the network."""
    endpoints: ClassVar[tuple[str, ...]]
    default_scopes: ClassVar[tuple[str, ...]]
    """The scopes of `grant` by default."""
    scope_mark: ClassVar[str] = " "
    """The separator between the scopes of `grant`."""
    reveals_refresh_expiry: ClassVar[bool] = True
    account_kind: ClassVar[type[Any]]
    accounts_name: ClassVar[str] = "accounts"
    """The name of the accounts in the control API."""
    common_fields: ClassVar[Mapping[str, str]] = COMMON_FIELDS
    account_fields: ClassVar[tuple[str, ...]] = ()
    """The other fields that `change_account` may change."""
    name_field: ClassVar[str] = "name"
    account_choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The only values of some of these fields."""
    account_flags: ClassVar[tuple[str, ...]] = ()
    """The ones that are on or off, for the page of accounts."""

    fault_script: ClassVar[type[FaultScript]] = FaultScript

    window_seconds: ClassVar[int] = 60
    default_limits: ClassVar[Mapping[str, int]]
    """Calls of one account in a window."""

    code_seconds: int
    access_seconds: int
    refresh_seconds: int
    old_access_token_survives: bool = True
    """An access token still works after its pair was refreshed."""
    refresh_restarts: bool = True
    """A refresh restarts the lifetime of the refresh token. Otherwise it counts from the consent."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__()
        self.context = context
        self.tables: dict[str, Table[Any]] = {}
        """By their name in the journal."""
        self.tokens = TokenStore(self.name, self, context.journal)
        self.tables["tokens"] = self.tokens.table
        self.codes: dict[str, AuthorizationCode] = {}
        self.accounts: Table[AccountT] = self.table(self.accounts_name, self.account_kind)
        """By id."""
        self.apps: dict[str, SandboxApp] = {}
        self.windows = FixedWindows()
        self.cache = ByteCache()
        """Images and videos by id, for the pages. And the pieces of uploads that are not whole."""
        self.limits = dict(self.default_limits)
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}

    def table(self, name: str, kind: type[T], **how: Any) -> Table[T]:
        """Create a table that a restart restores."""
        self.tables[name] = Table(self.name, name, kind, self.context.journal, **how)
        return self.tables[name]

    # --- time and ids --------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.context.clock.now()

    def timestamp(self) -> float:
        return self.now().timestamp()

    def seconds_since(self, at: datetime) -> float:
        return (self.now() - at).total_seconds()

    def new_id(self) -> str:
        return self.context.ids.new()

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:  # noqa: ARG002
        """Return the response to a call that met no fault. Stand-ins change it."""
        return reply

    def date_header(self) -> Headers:
        return [("date", format_datetime(self.now(), usegmt=True))]

    # --- faults --------------------------------------------------------------------------------------------------

    def next(self, endpoint: str) -> FaultScript:
        """Script what the next call of `endpoint` meets. Several scripts take effect in their order."""
        if endpoint not in self._faults:
            raise ValueError(f"{self.name} has no endpoint {endpoint!r} (known: {', '.join(self.endpoints)})")
        return self.fault_script(self._faults[endpoint], self, endpoint)

    def calm(self) -> None:
        for queue in self._faults.values():
            queue.clear()

    def fault_for(self, endpoint: str) -> Fault | None:
        return take_fault(self._faults[endpoint])

    @abstractmethod
    def http_error(self, status: int, endpoint: str = "") -> Reply: ...

    def unauthorized_reply(self, endpoint: str = "") -> Reply:
        return self.refusal_reply(endpoint, self.unauthorized_code)

    def limited_reply(self, endpoint: str) -> Reply:
        """Return a 429 that does not say when to return."""
        return self.refusal_reply(endpoint, self.limited_code)

    def rate_limited_reply(self, seconds: float, told_in: str, endpoint: str = "") -> Reply:
        """Return a 429. `told_in` says where its wait is: in the window's headers, in `retry-after`, or nowhere."""
        reply = self.limited_reply(endpoint)
        match told_in:
            case "window":
                return reply.with_headers(self.window_headers(FixedWindow(100, 100, self.timestamp() + seconds)))
            case "retry-after":
                return reply.with_headers([("retry-after", str(math.ceil(seconds)))])
            case "nothing":
                return reply
        raise ValueError(f"told_in is one of window, retry-after, nothing, not {told_in!r}")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:
        """Return the refusal with this name. Raise ValueError for another name."""
        if code not in self.errors:
            raise ValueError(f"{self.name} has no refusal named {code!r} (known: {', '.join(self.errors)})")
        return self.named_reply(endpoint, code)

    @abstractmethod
    def named_reply(self, endpoint: str, code: str) -> Reply:
        """Return one of `errors` in the words of the network."""

    # --- what each network shows ---------------------------------------------------------------------------------

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """Return the number of posts, pins and the like."""

    def view(self) -> dict[str, Any]:
        """Return the memory as JSON data, for the control API."""
        return {name: table.facts() for name, table in self.tables.items() if name != "tokens"}

    def admit(
        self, request: SandboxRequest, label: str, scopes: tuple[str, ...], headers: Headers
    ) -> ApiCaller[AccountT]:
        """Return the caller and count the call. Raise Refusal. Add headers to the response, even before a Refusal."""
        token = self.tokens.bearer(request.bearer)
        account = self.accounts.get(token.account_id) if token is not None else None
        if token is None or account is None:
            raise Refusal(self.unauthorized_reply(label))
        window = self.count(label, token)
        headers.extend(self.window_headers(window))
        if window.over:
            raise Refusal(self.rate_limited_reply(0, "nothing", label))
        caller = ApiCaller(token, account)
        self.check_caller(caller, label, scopes)
        return caller

    def count(self, label: str, token: Token) -> FixedWindow:
        """Count one call of an account through an app."""
        key, limit = (label, token.account_id, token.client_id), self.limits.get(label, 900)
        return self.windows.count(key, limit, self.window_seconds, self.timestamp())

    def window_headers(self, window: FixedWindow) -> Headers:  # noqa: ARG002  # TikTok has none
        return []

    @abstractmethod
    def check_caller(self, caller: ApiCaller[AccountT], label: str, scopes: tuple[str, ...]) -> None:
        """Raise Refusal for a caller without these scopes."""

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
        return next((account for account in list(self.accounts.values()) if account.username.lower() == wanted), None)

    def existing_account(self, username: str) -> AccountT:
        """Return the account. Raise ValueError for an unknown username."""
        account = self.account_named(username)
        if account is None:
            raise ValueError(f"no such account: {username}")
        return account

    def refuse_taken(self, username: str) -> None:
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")

    def change_account(self, username: str, **changes: Any) -> AccountT:
        """Change the handle, name or picture of an account, or a setting such as X's `subscription_type`, TikTok's
        `private` or Pinterest's `account_type`."""
        account = self.existing_account(username)
        fields = (*self.common_fields, *self.account_fields)
        unknown = [name for name in changes if name not in fields]
        if unknown:
            raise ValueError(f"no such field: {', '.join(unknown)} (known: {', '.join(fields)})")
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
        return self.accounts.save(account)

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
        family = family or secrets.token_hex(8)
        token = Token(access, refresh or new_refresh, account_id, scopes, client_id, family, *expires_at)
        self.tokens.add(token)
        return token

    def renew(self, old: Token, client_id: str) -> Token | None:
        """Return the pair that follows a refresh token, or None if that no longer works."""
        if not self.tokens.may_refresh(old, client_id):
            return None
        self.tokens.spend(old, access_survives=self.old_access_token_survives)
        return self.issue(
            old.account_id, old.scopes, client_id, family=old.family, refresh_seconds=self.seconds_of_next(old)
        )

    def seconds_of_next(self, old: Token) -> float | None:
        return None if self.refresh_restarts else old.refresh_expires_at - self.timestamp()

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
