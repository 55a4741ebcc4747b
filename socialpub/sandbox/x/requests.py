"""Requests to X's API: who may call, which query parameters, and which JSON bodies."""

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.tokens import Token
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import XAccount, XSwitches
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.problems import transaction_header, window_headers

# MERGED from sandbox/x/query.py: Query parameters of X's API: one of the two generations of names, never a mixture

SHARED = frozenset({"expansions", "user.fields", "media.fields", "poll.fields", "place.fields"})
NEW_USER_FIELDS = frozenset({
    "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified",
    "location", "name", "parody", "profile_banner_url", "profile_image_url", "protected", "public_metrics",
    "receives_your_dm", "subscribes_to_you", "subscription", "subscription_type", "url", "username", "verified",
    "verified_followers_count", "verified_type", "withheld",
})  # fmt: skip
OLD_USER_FIELDS = frozenset({
    "affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id",
    "is_identity_verified", "location", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id",
    "profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscription",
    "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld",
})  # fmt: skip
NEW_POST_FIELDS = frozenset({
    "article", "article_title", "attachments", "card_uri", "community_id", "context_annotations", "conversation_id",
    "created_at", "display_text_range", "edit_controls", "entities", "geo", "id", "lang", "matched_media_notes",
    "media_metadata", "non_public_metrics", "note_post", "note_request_suggestions", "organic_metrics",
    "paid_partnership", "possibly_sensitive", "promoted_metrics", "public_metrics", "reply_settings", "scopes",
    "source", "suggested_source_links", "suggested_source_links_with_counts", "text", "withheld",
})  # fmt: skip
OLD_POST_FIELDS = frozenset({
    "article", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id",
    "created_at", "display_text_range", "edit_controls", "edit_history_tweet_ids", "entities", "geo", "id",
    "in_reply_to_user_id", "lang", "matched_media_notes", "media_metadata", "non_public_metrics",
    "note_request_suggestions", "note_tweet", "organic_metrics", "paid_partnership", "possibly_sensitive",
    "promoted_metrics", "public_metrics", "referenced_tweets", "reply_settings", "scopes", "source",
    "suggested_source_links", "suggested_source_links_with_counts", "text", "withheld",
})  # fmt: skip
NEW_EXPANSIONS = frozenset({
    "article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet",
    "attachments.poll_ids", "author_id", "edit_history_post_ids", "entities.mentions.username", "geo.place_id",
    "in_reply_to_user_id", "referenced_posts", "username",
})  # fmt: skip
OLD_EXPANSIONS = frozenset({
    "article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet",
    "attachments.poll_ids", "author_id", "edit_history_tweet_ids", "entities.mentions.username",
    "entities.note.mentions.username", "geo.place_id", "in_reply_to_user_id", "referenced_tweets.id",
    "referenced_tweets.id.attachments.media_keys", "referenced_tweets.id.author_id",
})  # fmt: skip
REFERENCES = frozenset({"referenced_posts", "referenced_tweets", "referenced_tweets.id"})
"""Asks what a post replies to and quotes: in the old names a field or an expansion, in the new ones an expansion."""
SCOPES = frozenset({
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
})  # fmt: skip


def checked_query(x: XSwitches, request: SandboxRequest, names: set[str]) -> dict[str, str]:
    """The query, when every parameter is one of `names` and none comes from the other generation."""
    query = request.query()
    if x.one_dialect:
        names = names - {"tweet.fields" if x.dialect == "new" else "post.fields"}
    for name in query:
        if name not in names:
            raise problems.invalid(
                x, f"The query parameter [{name}] is not one of {sorted(names)}", **{name: query[name]}
            )
    if "tweet.fields" in query and "post.fields" in query:
        raise problems.invalid(x, "tweet.fields and post.fields belong to different documents", **query)
    return query


def expansions(x: XSwitches, query: dict[str, str]) -> set[str]:
    """The expansions asked for, of the generation that the fields are asked in."""
    generations = {"new": NEW_EXPANSIONS, "old": OLD_EXPANSIONS}
    asked_in = "new" if "post.fields" in query else "old" if "tweet.fields" in query else None
    if asked_in is None and x.one_dialect:
        asked_in = x.dialect
    known = [generations[asked_in]] if asked_in else [*generations.values()]
    return field_list(x, query, "expansions", known[0], known[-1])


def field_list(x: XSwitches, query: dict[str, str], name: str, new: frozenset[str], old: frozenset[str]) -> set[str]:
    """The members of a comma list, when one generation knows them all."""
    if name not in query:
        return set()
    fields = query[name].split(",")
    if len(set(fields)) != len(fields) or not (new.issuperset(fields) or old.issuperset(fields)):
        raise problems.invalid(
            x, f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(new)}", **{name: query[name]}
        )
    return set(fields)


# MERGED from sandbox/x/schema.py: JSON bodies and their shapes: what the API document allows, and nothing else.

Finding = tuple[str, Any, str]
"""Path, what stood there, what is wrong with it."""
XSchemaRule = Callable[[str, Any], Iterator[Finding]]

DIGITS = re.compile(r"[0-9]{1,19}")


def json_object(x: XSwitches, request: SandboxRequest) -> dict[str, Any]:
    """The body, which must be one JSON object declared as such."""
    if not request.body:
        raise problems.invalid(x, "Request body must be a JSON object.")
    if request.content_type != "application/json":
        raise problems.invalid(x, "Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body)
    except ValueError:
        raise problems.invalid(x, "Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise problems.invalid(x, "Request body must be a JSON object.")
    return body


def require_valid(x: XSwitches, rule: XSchemaRule, body: Any) -> None:
    """400 with everything that is wrong with the body."""
    found = list(rule("$", body))
    if found:
        raise problems.invalid_fields(
            x, [({path.removeprefix("$."): [str(value)[:200]]}, f"{path}: {message}") for path, value, message in found]
        )


def text(low: int = 0, high: int | None = None) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, str):
            yield path, value, "string expected"
        elif len(value) < low or (high is not None and len(value) > high):
            yield path, value, f"must be {low} to {high} characters long"

    return check


def boolean(path: str, value: Any) -> Iterator[Finding]:
    if not isinstance(value, bool):
        yield path, value, "boolean expected"


def number(low: int, high: int) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield path, value, "integer expected"
        elif not low <= value <= high:
            yield path, value, f"must be between {low} and {high}"

    return check


def digits(path: str, value: Any) -> Iterator[Finding]:
    if not isinstance(value, str) or not DIGITS.fullmatch(value):
        yield path, value, "does not match the regex pattern ^[0-9]{1,19}$"


def one_of(*allowed: str) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if value not in allowed or not isinstance(value, str):
            yield path, value, f"does not have a value in the enumeration {list(allowed)}"

    return check


def array_of(rule: XSchemaRule, low: int, high: int) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, list):
            yield path, value, "array expected"
            return
        if not low <= len(value) <= high:
            yield path, value, f"there must be {low} to {high} items in the array"
        for index, item in enumerate(value):
            yield from rule(f"{path}[{index}]", item)

    return check


def object_of(fields: dict[str, XSchemaRule], *required: str, open_ended: bool = False) -> XSchemaRule:
    def check(path: str, value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield path, value, "object expected"
            return
        for name in required:
            if name not in value:
                yield f"{path}.{name}", "", "is missing but it is required"
        for name, item in value.items():
            if name in fields:
                yield from fields[name](f"{path}.{name}", item)
            elif not open_ended:
                yield (
                    f"{path}.{name}",
                    item,
                    "is not defined in the schema and the schema does not allow additional properties",
                )

    return check


# MERGED from sandbox/x/access.py: Who may call: bearer, kind of token, account, rate limits, credits, scope, in th

WINDOW_SECONDS = 900
DAY_SECONDS = 86400

XCaller = ApiCaller[XAccount]
UserHandler = Callable[[XSandbox, SandboxRequest, XCaller], Reply]


def user_call(label: str, *scopes: str) -> Callable[[UserHandler], Callable[[XSandbox, SandboxRequest], Reply]]:
    """Makes a handler of `(x, request, caller)` one of `(x, request)`. `label` names its limit in `world.x.limits`."""

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
    token = x.tokens.bearer(request.bearer)
    if token is None:
        limit = x.limits.get(label, 900)
        headers.extend(window_headers("x-rate-limit", limit, limit, x.timestamp() + WINDOW_SECONDS))
        raise Refusal(problems.unauthorized())
    _count(x, token, label, headers)
    if token.app_only:
        raise problems.app_only(x)
    account = x.account_of(token)
    if account is None:
        raise Refusal(problems.unauthorized())
    if account.suspended:
        raise problems.suspended(x)
    return ApiCaller(token, account)


def _count(x: XSandbox, token: Token, label: str, headers: Headers) -> None:
    now = x.timestamp()
    limit = x.limits.get(label, 900)
    window = x.windows.count((label, token.account_id), limit, WINDOW_SECONDS, now)
    headers.extend(window_headers("x-rate-limit", limit, window.remaining, window.reset))
    over = window.over
    for kind, limits, who in (
        ("user", x.daily_limits, token.account_id),
        ("app", x.app_daily_limits, token.client_id or ""),
    ):
        if label in limits:
            day = x.windows.count((kind, label, who), limits[label], DAY_SECONDS, now)
            headers.extend(window_headers(f"x-{kind}-limit-24hour", day.limit, day.remaining, day.reset))
            over = over or day.over
    if over:
        raise Refusal(problems.problem(429))
