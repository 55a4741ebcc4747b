"""Requests to Pinterest's API: who may call, and which JSON bodies."""

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, SandboxShape, ShapeFinding, check_shape
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PinterestAccount
from socialpub.sandbox.pinterest.network import PinterestSandbox

MINUTE = 60
SHOWN = 200
RateCategory = Literal["org_read", "org_write"]
PinterestCaller = ApiCaller[PinterestAccount]
UserHandler = Callable[[PinterestSandbox, SandboxRequest, PinterestCaller], Reply]

ObjectId = Annotated[str, StringConstraints(pattern=r"^\d+$")]
Base64Text = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9+/=]+$")]
Link = Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s/?#]+\.?\S*$")]
Index = Annotated[int, Field(ge=0)]
MESSAGES = {
    "missing": "'{path}' is a required property",
    "extra_forbidden": "Additional properties are not allowed ('{path}' was unexpected)",
    "string_type": "{value} is not of type 'string' ({path})",
    "bool_type": "{value} is not of type 'boolean' ({path})",
    "list_type": "{value} is not of type 'array' ({path})",
    "model_type": "{value} is not of type 'object' ({path})",
    "literal_error": "{value} is not one of [{expected}] ({path})",
    "string_pattern_mismatch": "{value} does not match '{pattern}' ('{path}' must match the pattern: {pattern})",
    "string_too_long": "{value} in '{path}' is too long (maxLength={max_length})",
    "string_too_short": "{value} in '{path}' is too short (minLength={min_length})",
    "too_long": "'{path}' has {actual_length} items (maxItems={max_length})",
    "too_short": "'{path}' has {actual_length} items (minItems={min_length})",
}


def api_call(
    category: RateCategory, *scopes: str
) -> Callable[[UserHandler], Callable[[PinterestSandbox, SandboxRequest], Reply]]:
    """Make a handler of `(pinterest, request, caller)` one of `(pinterest, request)`. All scopes are needed.

    The order is: bearer, rate, scopes. Every response carries the request id and the rate headers.
    """

    def wrap(handler: UserHandler) -> Callable[[PinterestSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
            headers: Headers = []
            try:
                token = pinterest.tokens.bearer(request.bearer)
                account = pinterest.account_of(token) if token else None
                if token is None or account is None:
                    raise replies.refused(pinterest, "authentication_failed")
                headers = count(pinterest, category, token.client_id, account.id)
                missing = [scope for scope in scopes if scope not in token.scopes]
                if missing:
                    message = f"Your token is missing the required scopes: {', '.join(missing)}"
                    raise replies.invalid(pinterest, 403, 3, message)
                reply = handler(pinterest, request, ApiCaller(token, account))
            except Refusal as refusal:
                reply = refusal.reply
            return replies.with_rate_headers(reply, headers) if headers else reply

        return checked

    return wrap


def count(pinterest: PinterestSandbox, category: RateCategory, client_id: str | None, account_id: str) -> Headers:
    """Count one call. Return the headers that report it. Raise Refusal for one too many."""
    pinterest.category_counts[category] += 1
    now, limit = pinterest.timestamp(), pinterest.limits[category]
    window = pinterest.windows.count((category, client_id or "", account_id), limit, MINUTE, now)
    headers = [
        ("x-ratelimit-limit", f"{limit}, {limit};w={MINUTE}"),
        ("x-ratelimit-remaining", str(window.remaining)),
        ("x-ratelimit-reset", str(math.ceil(window.reset - now))),
    ]
    if window.over:
        raise Refusal(replies.with_rate_headers(replies.named_error(pinterest, "rate_limited"), headers))
    return headers


def valid_body(
    pinterest: PinterestSandbox, request: SandboxRequest, shape: type[SandboxShape], code: int = 1
) -> dict[str, Any]:
    """Return the body if it is a JSON object of this shape. Raise Refusal with the first finding."""
    body = request.json_object()
    if body is None:
        raise replies.invalid(pinterest, 400, 1, "Invalid request: the body is not a JSON object.")
    for finding in check_shape(shape, body):
        raise replies.invalid(pinterest, 400, code, f"Invalid request: {_message(finding)}")
    return body


def _message(finding: ShapeFinding) -> str:
    if finding.kind == "string_pattern_mismatch" and str(finding.path[-1]).endswith(("link", "url")):
        return f"Entered URL is invalid. ({finding.dotted})"
    written = repr(finding.value)
    facts = {"path": finding.dotted, "value": written if len(written) <= SHOWN else written[:SHOWN] + "…"}
    return MESSAGES.get(finding.kind, "{path}: " + finding.message).format(**finding.context, **facts)
