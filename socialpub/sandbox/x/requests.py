"""Requests to X's API: who may call, which query parameters, and which JSON bodies."""

import functools
import json
from collections.abc import Callable
from typing import Any

from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, SandboxShape, ShapeFinding, check_shape
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import XAccount, XSwitches
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.problems import transaction_header, window_headers

WINDOW_SECONDS = 900
DAY_SECONDS = 86400

XCaller = ApiCaller[XAccount]
UserHandler = Callable[[XSandbox, SandboxRequest, XCaller], Reply]


# --- who may call ----------------------------------------------------------------------------------------------------


def user_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[[XSandbox, SandboxRequest], Reply]]:
    """Make a handler of `(x, request, caller)` one of `(x, request)`. `label` names its limit in `world.x.limits`.

    The order is: bearer, rate limits, account, credits, scopes. Every response carries the rate headers.
    """

    def wrap(handler: UserHandler) -> Callable[[XSandbox, SandboxRequest], Reply]:
        @functools.wraps(handler)
        def checked(x: XSandbox, request: SandboxRequest) -> Reply:
            headers: Headers = [transaction_header()]
            try:
                caller = _caller(x, request, label, headers)
                if x.credits_depleted:
                    raise Refusal(problems.credits_depleted(x.credits_depleted))
                if not caller.may(*scopes):
                    raise problems.forbidden()
                reply = handler(x, request, caller)
            except Refusal as refusal:
                reply = refusal.reply
            reply.headers.extend(headers)
            return reply

        return checked

    return wrap


def _caller(x: XSandbox, request: SandboxRequest, label: str, headers: Headers) -> XCaller:
    token, now, limit = x.tokens.bearer(request.bearer), x.timestamp(), x.limits.get(label, 900)
    if token is None:
        headers.extend(window_headers("x-rate-limit", limit, limit, now + WINDOW_SECONDS))
        raise Refusal(problems.unauthorized())
    window = x.windows.count((label, token.account_id), limit, WINDOW_SECONDS, now)
    headers.extend(window_headers("x-rate-limit", limit, window.remaining, window.reset))
    over = window.over
    if label in x.daily_limits:
        day = x.windows.count(("day", label, token.account_id), x.daily_limits[label], DAY_SECONDS, now)
        headers.extend(window_headers("x-user-limit-24hour", day.limit, day.remaining, day.reset))
        over = over or day.over
    if over:
        raise Refusal(problems.problem(429))
    account = x.account_of(token)
    if account is None:
        raise Refusal(problems.unauthorized())
    if account.suspended:
        raise problems.suspended(x)
    return ApiCaller(token, account)


# --- query parameters ------------------------------------------------------------------------------------------------

USER_FIELDS = frozenset({
    "created_at", "description", "id", "name", "profile_image_url", "protected", "public_metrics", "subscription_type",
    "username", "verified", "verified_type",
})  # fmt: skip
_POST_FIELDS = frozenset({
    "attachments", "conversation_id", "created_at", "entities", "id", "paid_partnership", "reply_settings", "text",
})  # fmt: skip
POST_FIELDS = {
    "new": _POST_FIELDS | {"note_post"},
    "old": _POST_FIELDS | {"author_id", "edit_history_tweet_ids", "note_tweet", "referenced_tweets"},
}
"""The fields that the sandbox knows, of X's two generations of names. A request uses one of them, never a mixture."""
EXPANSIONS = {"new": frozenset({"referenced_posts"}), "old": frozenset({"referenced_tweets.id"})}
REFERENCES = frozenset({"referenced_posts", "referenced_tweets", "referenced_tweets.id"})
"""What asks for the posts that a post replies to or quotes."""
PARAMETERS = {"new": "post.fields", "old": "tweet.fields"}


def checked_query(x: XSwitches, request: SandboxRequest, *names: str) -> dict[str, str]:
    """Return the query if it has these parameters only. Raise Refusal."""
    query = request.query()
    for name in query:
        if name not in names:
            message = f"The query parameter [{name}] is not one of {sorted(names)}"
            raise problems.invalid(x, message, **{name: query[name]})
    return query


def post_fields(x: XSwitches, query: dict[str, str]) -> set[str]:
    """Return the fields and expansions of posts that a query asks for. Raise Refusal."""
    asked = [generation for generation, parameter in PARAMETERS.items() if parameter in query]
    if len(asked) > 1:
        raise problems.invalid(x, "tweet.fields and post.fields belong to different documents", **query)
    if x.one_dialect and asked not in ([], [x.dialect]):
        parameter = PARAMETERS[asked[0]]
        raise problems.invalid(x, f"The query parameter [{parameter}] is not known", **{parameter: query[parameter]})
    generations = asked or ([x.dialect] if x.one_dialect else ["new", "old"])
    found = field_list(x, query, "expansions", *(EXPANSIONS[one] for one in generations))
    for generation in asked:
        found |= field_list(x, query, PARAMETERS[generation], POST_FIELDS[generation])
    return found


def field_list(x: XSwitches, query: dict[str, str], name: str, *known: frozenset[str]) -> set[str]:
    """Return the members of a comma list if one of these sets contains all of them. Raise Refusal."""
    if name not in query:
        return set()
    fields = query[name].split(",")
    if len(set(fields)) != len(fields) or not any(one.issuperset(fields) for one in known):
        message = f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(known[0])}"
        raise problems.invalid(x, message, **{name: query[name]})
    return set(fields)


# --- JSON bodies -----------------------------------------------------------------------------------------------------

MESSAGES = {
    "missing": "is missing but it is required",
    "extra_forbidden": "is not defined in the schema and the schema does not allow additional properties",
    "string_type": "string expected",
    "bool_type": "boolean expected",
    "int_type": "integer expected",
    "list_type": "array expected",
    "model_type": "object expected",
    "literal_error": "does not have a value in the enumeration [{expected}]",
    "string_pattern_mismatch": "does not match the regex pattern {pattern}",
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "there must be at least {min_length} items in the array",
    "too_long": "there must be at most {max_length} items in the array",
}


def json_object(x: XSwitches, request: SandboxRequest) -> dict[str, Any]:
    """Return the body if it is a JSON object declared as such. Raise Refusal."""
    if request.body and request.content_type != "application/json":
        raise problems.invalid(x, "Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        raise problems.invalid(x, "Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise problems.invalid(x, "Request body must be a JSON object.")
    return body


def require_valid(x: XSwitches, shape: type[SandboxShape], body: dict[str, Any]) -> None:
    """Raise Refusal with everything that is wrong with the body."""
    if found := check_shape(shape, body):
        raise problems.invalid_fields(x, [({one.dotted: [str(one.value)[:200]]}, _message(one)) for one in found])


def _message(finding: ShapeFinding) -> str:
    words = MESSAGES.get(finding.kind, finding.message).format(**finding.context)
    return f"$.{finding.dotted}: {words}"
