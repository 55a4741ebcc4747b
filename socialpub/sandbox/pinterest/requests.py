"""Requests to Pinterest's API: who may call, and which JSON bodies."""

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PinterestAccount, PinterestSwitches
from socialpub.sandbox.pinterest.network import PinterestSandbox

# MERGED from sandbox/pinterest/schema.py: JSON bodies and their shapes: what Pinterest's API document allows, and

PinterestSchemaRule = Callable[[str, Any], Iterator[str]]
"""Yields what is wrong with a value, given the name it stands under."""

DIGITS = re.compile(r"[0-9]+")
BASE64 = re.compile(r"[a-zA-Z0-9+/=]+")
URL = re.compile(r"https?://[^\s/?#]+\.?[^\s]*")
SHOWN = 200


def require_valid(pinterest: PinterestSwitches, rule: PinterestSchemaRule, body: Any, code: int = 1) -> None:
    """400 with the first thing that is wrong with the body."""
    for wrong in rule("", body):
        raise replies.invalid(pinterest, 400, code, f"Invalid request: {wrong}")


def text(low: int, high: int) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{_short(value)} is not of type 'string' ({name})"
        elif not low <= len(value) <= high:
            yield f"{_short(value)} in '{name}' must have {low} to {high} characters (maxLength={high})"

    return check


def digits(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not DIGITS.fullmatch(value):
        yield f"{_short(value)} does not match '^\\\\d+$' ('{name}' must match the pattern: ^\\d+$)"


def base64_text(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not BASE64.fullmatch(value):
        yield f"'{name}' does not match '^[a-zA-Z0-9+/=]+$'"


def link(name: str, value: Any) -> Iterator[str]:
    yield from text(0, 2048)(name, value)
    if isinstance(value, str) and not URL.fullmatch(value):
        yield f"Entered URL is invalid. ({name})"


def boolean(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{_short(value)} is not of type 'boolean' ({name})"


def at_least_zero(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield f"{_short(value)} is not an integer of 0 or more ({name})"


def one_of(*allowed: str) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if value not in allowed:
            yield f"{_short(value)} is not one of {list(allowed)} ({name})"

    return check


def array_of(rule: PinterestSchemaRule, low: int, high: int) -> PinterestSchemaRule:
    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{_short(value)} is not of type 'array' ({name})"
            return
        if not low <= len(value) <= high:
            yield f"'{name}' has {len(value)} items (minItems={low}, maxItems={high})"
        for index, item in enumerate(value):
            yield from rule(f"{name}[{index}]", item)

    return check


def object_of(
    fields: dict[str, PinterestSchemaRule], required: Iterable[str] = (), nullable: Iterable[str] = ()
) -> PinterestSchemaRule:
    needed, may_be_null = tuple(required), frozenset(nullable)

    def check(name: str, value: Any) -> Iterator[str]:
        dot = f"{name}." if name else ""
        if not isinstance(value, dict):
            yield f"{_short(value)} is not of type 'object' ({name or 'body'})"
            return
        for one in needed:
            if one not in value:
                yield f"'{dot}{one}' is a required property"
        for key, item in value.items():
            if key not in fields:
                yield f"Additional properties are not allowed ('{dot}{key}' was unexpected)"
            elif item is not None or key not in may_be_null:
                yield from fields[key](f"{dot}{key}", item)

    return check


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= SHOWN else written[:SHOWN] + "…"


# MERGED from sandbox/pinterest/access.py: Who may call Pinterest's API: approved app, bearer, rate, scopes, in thi

MINUTE, DAY = 60, 86400
RateCategory = Literal["org_read", "org_write"]


@dataclass(frozen=True)
class PinterestCaller(ApiCaller[PinterestAccount]):
    sandbox: bool
    """In Pinterest's own sandbox."""


UserHandler = Callable[[PinterestSandbox, SandboxRequest, PinterestCaller], Reply]


def in_sandbox(request: SandboxRequest) -> bool:
    """Pinterest's own sandbox, which knows nothing of production."""
    return request.path.startswith("/sandbox/")


def api_call(
    category: RateCategory, *scopes: str
) -> Callable[[UserHandler], Callable[[PinterestSandbox, SandboxRequest], Reply]]:
    """Makes a handler of `(pinterest, request, caller)` one of `(pinterest, request)`. All scopes are needed."""

    def wrap(handler: UserHandler) -> Callable[[PinterestSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
            headers: Headers = []
            try:
                if pinterest.unapproved:
                    raise replies.refused(pinterest, "unapproved")
                caller = _caller(pinterest, request)
                headers = count(pinterest, category, caller.token.client_id, caller.account.id)
                missing = [scope for scope in scopes if scope not in caller.token.scopes]
                if missing:
                    message = f"Your token is missing the required scopes: {', '.join(missing)}"
                    raise replies.invalid(pinterest, 403, 3, message)
                reply = handler(pinterest, request, caller)
            except Refusal as refusal:
                reply = refusal.reply
            return replies.with_rate_headers(reply, headers) if headers else reply

        return checked

    return wrap


def _caller(pinterest: PinterestSandbox, request: SandboxRequest) -> PinterestCaller:
    token = pinterest.tokens.bearer(request.bearer)
    account = pinterest.account_of(token) if token else None
    sandbox = in_sandbox(request)
    if token is None or account is None or pinterest.is_sandbox_token(token) != sandbox:
        raise replies.refused(pinterest, "authentication_failed")
    return PinterestCaller(token, account, sandbox)


def count(pinterest: PinterestSandbox, category: RateCategory, client_id: str | None, account_id: str) -> Headers:
    """One call; the headers that report it, or the refusal when it was one too many."""
    pinterest.category_counts[category] += 1
    now, app = pinterest.timestamp(), client_id or ""
    if pinterest.tier == "trial":
        windows = [
            pinterest.windows.count(("trial", kind, app), pinterest.trial_limits[kind], DAY, now)
            for kind in ("all", category)
        ]
    else:
        windows = [pinterest.windows.count((category, app, account_id), pinterest.limits[category], MINUTE, now)]
    tightest = min(windows, key=lambda window: window.remaining)
    seconds = DAY if pinterest.tier == "trial" else MINUTE
    headers = [
        ("x-ratelimit-limit", f"{tightest.limit}, {tightest.limit};w={seconds}"),
        ("x-ratelimit-remaining", str(tightest.remaining)),
        ("x-ratelimit-reset", str(math.ceil(tightest.reset - now))),
    ]
    if any(window.over for window in windows):
        raise Refusal(replies.with_rate_headers(replies.named_error(pinterest, "rate_limited"), headers))
    return headers


def json_object(pinterest: PinterestSandbox, request: SandboxRequest) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    body = request.json_object()
    if body is None:
        raise replies.invalid(pinterest, 400, 1, "Invalid request: the body is not a JSON object.")
    return body
