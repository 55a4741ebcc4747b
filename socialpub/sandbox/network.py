"""What every network has: declared endpoints, scripted faults, accounts and tokens.

A network declares its endpoints, its limits and the words of its errors. How tokens look is its own as well.
"""

import re
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

from socialpub.sandbox.faults import Fault, FaultScript, take_fault
from socialpub.sandbox.memory import ByteCache, FixedWindow, SandboxContext, Table, Token, TokenTable
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest

T = TypeVar("T")
HandlerT = TypeVar("HandlerT", bound=Callable[[Any, SandboxRequest], Reply])


# --- endpoints -------------------------------------------------------------------------------------------------------


class SandboxCall(NamedTuple):
    """The declaration of an endpoint. The method with its name handles it."""

    method: str
    """Empty: GET and POST."""
    path: str
    """Below the network's path."""
    name: str
    scopes: tuple[str, ...] | None
    """The scopes that the access token needs. None: the endpoint needs no access token."""


def open_call(method: str, path: str) -> Callable[[HandlerT], HandlerT]:
    """Declare an endpoint that needs no access token."""

    def declare(handler: HandlerT) -> HandlerT:
        handler.declared = SandboxCall(method, path, handler.__name__, None)  # type: ignore[attr-defined]
        return handler

    return declare


def api_call(method: str, path: str, *scopes: str) -> Callable[[HandlerT], HandlerT]:
    """Declare an endpoint for callers with an access token. `SandboxNetwork.admit` checks and counts the call."""

    def declare(handler: HandlerT) -> HandlerT:
        handler.declared = SandboxCall(method, path, handler.__name__, scopes)  # type: ignore[attr-defined]
        return handler

    return declare


# --- accounts --------------------------------------------------------------------------------------------------------


FieldForm = str | tuple[object, ...]
"""A pattern of texts, or the only values."""
COMMON_FIELDS: Mapping[str, FieldForm] = {"handle": r"[A-Za-z0-9_.]{1,30}", "name": r".{1,50}", "picture": r"\w{1,30}"}
YES_OR_NO = (False, True)


class SandboxNetwork(ABC):
    name: ClassVar[str]
    label: ClassVar[str]
    """The display name of the network."""
    errors: ClassVar[Mapping[str, tuple[Any, ...]]]
    """The named refusals: status, further facts, message."""
    unauthorized_code: ClassVar[str]
    """The refusal of an access token."""
    limited_code: ClassVar[str]
    """The refusal of one call too many."""
    default_scopes: ClassVar[tuple[str, ...]]
    """The scopes of `grant` by default."""
    scope_mark: ClassVar[str] = " "
    """The separator between the scopes of `grant`."""
    reveals_refresh_expiry: ClassVar[bool] = True
    account_kind: ClassVar[type[Any]]
    """A dataclass with `id`, `username`, and `picture`: the avatar is drawn from this word, or from the username."""
    accounts_name: ClassVar[str] = "accounts"
    """The name of the accounts in the control API."""
    account_fields: ClassVar[Mapping[str, FieldForm]]
    """The fields that `change_account` may change."""
    name_field: ClassVar[str] = "name"
    """The field of the display name."""
    fault_script: ClassVar[type[FaultScript]] = FaultScript
    window_seconds: ClassVar[int] = 60
    default_limits: ClassVar[Mapping[str, int]]
    """Calls of one account in a window."""

    access_seconds: int
    refresh_seconds: int
    old_access_token_survives: bool = True
    """An access token still works after its pair was refreshed."""
    refresh_restarts: bool = True
    """A refresh restarts the lifetime of the refresh token. Otherwise it counts from the consent."""

    def __init__(self, context: SandboxContext) -> None:
        self.context = context
        self.tables: dict[str, Table[Any]] = {}
        """By their name in the journal."""
        self.tokens = TokenTable(self.name, self, context.journal)
        self.tables["tokens"] = self.tokens
        self.accounts: Table[Any] = self.table(self.accounts_name, self.account_kind)
        """By id."""
        self.cache = ByteCache()
        """Images and videos by id, for the pages. And the pieces of uploads that are not whole."""
        self.limits = dict(self.default_limits)
        self.windows: dict[Hashable, FixedWindow] = {}
        self.endpoints = tuple(call.name for call in self.declared_calls())
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}
        self.counts: Counter[str] = Counter()
        """Ended calls by endpoint."""
        self.in_flight = 0
        self.held = 0
        """The calls in progress whose fault never responds. They wait until their caller disconnects."""

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

    def date_header(self) -> Headers:
        return [("date", format_datetime(self.now(), usegmt=True))]

    # --- calls ---------------------------------------------------------------------------------------------------

    @classmethod
    def declared_calls(cls) -> list[SandboxCall]:
        """Return the declared endpoints. Paths without parameters come first, since the others may match them."""
        declared: dict[str, SandboxCall] = {}
        for kind in reversed(cls.__mro__):
            declared |= {name: item.declared for name, item in vars(kind).items() if hasattr(item, "declared")}
        return sorted(declared.values(), key=lambda call: call.path.count("{"))

    def call_began(self, request: SandboxRequest) -> None:  # for stand-ins
        self.in_flight += 1

    def call_ended(self, request: SandboxRequest, endpoint: str, status: int) -> None:  # noqa: ARG002  # for stand-ins
        """Count a call. Status 0: the caller got no response."""
        self.in_flight -= 1
        self.counts[endpoint] += 1

    async def prepare(self, endpoint: str) -> None:  # noqa: B027  # for TikTok
        """Bring the memory up to date before a call, or (without an endpoint) before a page."""

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:  # noqa: ARG002
        """Return the response to a call that met no fault. Stand-ins change it."""
        return reply

    def check_request(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Check a request before its handler. Raise Refusal."""
        if call.scopes is not None:
            self.admit(request, call)

    def admit(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Set the caller of the request and count the call. Raise Refusal."""
        token = self.tokens.bearer(request.bearer)
        account = self.accounts.get(token.account_id) if token is not None else None
        if token is None or account is None:
            raise self.refused(self.unauthorized_code, call.name)
        request.token, request.account = token, account
        window = self.count(self.limit_of(call), token)
        request.reply_headers += self.window_headers(window)
        if window.over:
            raise self.refused(self.limited_code, call.name)
        self.check_caller(request, call)

    @abstractmethod
    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Raise Refusal for a caller without the scopes of the call."""

    # --- rate limits ---------------------------------------------------------------------------------------------

    def limit_of(self, call: SandboxCall) -> str:
        """Return the name of the limit that counts this endpoint."""
        return call.name

    def count(self, limit: str, token: Token) -> FixedWindow:
        """Count one call of an account through an app."""
        key = limit, token.account_id, token.client_id
        return self.count_in_window(key, self.limits.get(limit, 900), self.window_seconds)

    def count_in_window(self, key: Hashable, limit: int, seconds: float) -> FixedWindow:
        """Count one call. A refused call does not lengthen the window."""
        window, now = self.windows.get(key), self.timestamp()
        if window is None or now >= window.reset or now < window.reset - seconds:
            window = self.windows[key] = FixedWindow(limit, 0, now + seconds)
        window.limit = limit
        window.used += 1
        return window

    def window_headers(self, window: FixedWindow) -> Headers:  # noqa: ARG002  # TikTok has none
        return []

    # --- faults and errors ---------------------------------------------------------------------------------------

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
    def http_error(self, status: int, endpoint: str = "") -> Reply:
        """Return a plain error in the shape of the network."""

    @abstractmethod
    def error_reply(self, code: str, endpoint: str) -> Reply:
        """Return one of `errors` in the words of the network."""

    def refusal_reply(self, code: str, endpoint: str = "") -> Reply:
        """Return the refusal with this name. Raise ValueError for another name."""
        if code not in self.errors:
            raise ValueError(f"{self.name} has no refusal named {code!r} (known: {', '.join(self.errors)})")
        return self.error_reply(code, endpoint)

    def refused(self, code: str, endpoint: str = "") -> Refusal:
        return Refusal(self.error_reply(code, endpoint))

    def rate_limited_reply(self, seconds: float, endpoint: str = "") -> Reply:
        """Return a 429 with the headers of a used-up window."""
        window = FixedWindow(100, 100, self.timestamp() + seconds)
        return self.error_reply(self.limited_code, endpoint).with_headers(self.window_headers(window))

    # --- what each network shows ---------------------------------------------------------------------------------

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """Return the number of posts, pins and the like."""

    def view(self) -> dict[str, Any]:
        """Return the memory as JSON data, for the control API."""
        return {name: table.facts() for name, table in self.tables.items() if name != "tokens"}

    # --- accounts ------------------------------------------------------------------------------------------------

    @abstractmethod
    def new_account(self, username: str, name: str, **facts: Any) -> Any:
        """Return an account with a new id."""

    def add_account(self, username: str, name: str | None = None, **facts: Any) -> Any:
        """Create an account. `facts` are fields of its dataclass. Raise ValueError for a username that exists."""
        self.refuse_taken(username)
        return self.accounts.save(self.new_account(username, name or username, **facts))

    def account_named(self, username: str) -> Any:
        """Return the account. The username is not case-sensitive."""
        wanted = username.lower()
        return next((account for account in list(self.accounts.values()) if account.username.lower() == wanted), None)

    def existing_account(self, username: str) -> Any:
        """Return the account. Raise ValueError for an unknown username."""
        account = self.account_named(username)
        if account is None:
            raise ValueError(f"no such account: {username}")
        return account

    def refuse_taken(self, username: str) -> None:
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")

    def change_account(self, username: str, **changes: Any) -> Any:
        """Change the handle, name or picture of an account, or a setting such as X's `subscription_type`, TikTok's
        `private` or Pinterest's `account_type`."""
        account = self.existing_account(username)
        for name, value in changes.items():
            form = self.account_fields.get(name)
            if form is None:
                raise ValueError(f"no such field: {name} (known: {', '.join(self.account_fields)})")
            if isinstance(form, tuple) and value not in form:
                raise ValueError(f"{name} is one of {', '.join(map(str, form))}, not {value!r}")
            if isinstance(form, str) and not re.fullmatch(form, str(value)):
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
        family: str = "",
    ) -> Token:
        """Issue a pair. `refresh` is a refresh token that continues to work; None makes a new one."""
        now = self.timestamp()
        expires_at = (
            now + (self.access_seconds if seconds is None else seconds),
            now + (self.refresh_seconds if refresh_seconds is None else refresh_seconds),
        )
        access, new_refresh = self.new_token_pair(scopes, account_id, expires_at)
        family = family or secrets.token_hex(8)
        return self.tokens.save(
            Token(access, refresh or new_refresh, account_id, scopes, client_id, family, *expires_at)
        )

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
        account: Any,
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
        for token in self.tokens.of(self.existing_account(username).id):
            self.tokens.end_family(token.family)
