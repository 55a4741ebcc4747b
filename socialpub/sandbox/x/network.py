"""The memory of X (accounts, posts and tokens), and X's refusals in every known shape."""

import math
import secrets
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import format_datetime
from http.client import responses
from typing import Any, ClassVar

from socialpub.sandbox.memory import FixedWindows, SandboxContext, from_facts, json_facts
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller, SandboxNetwork
from socialpub.sandbox.x.models import SUBSCRIPTIONS, XAccount, XMedia, XMediaStore, XPost, XSwitches

WINDOW_SECONDS = 900
DAY_SECONDS = 86400
ALL_SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
JOURNALED = (
    "account_id", "username", "text", "created_at", "options", "client_id", "shown_text", "entities",
    "conversation_id",
)  # fmt: skip
VIEWED = ("id", "account_id", "username", "text", "created_at", "received_monotonic", "client_id", "options")
JOURNALED_MEDIA = ("id", "key", "category", "mime_type", "size", "sha256", "alt_text")


class XSandbox(SandboxNetwork[XAccount], XSwitches):
    name = "x"
    label = "X"
    endpoints = (
        "authorize", "token", "revoke", "me", "upload_one_shot", "upload_initialize", "upload_append",
        "upload_finalize", "upload_status", "metadata", "create_post", "list_posts",
    )  # fmt: skip
    default_scopes = ALL_SCOPES
    reveals_refresh_expiry = False
    account_kind = XAccount
    account_fields = ("subscription_type", "protected", "suspended", "max_length")
    account_choices: ClassVar = {"subscription_type": SUBSCRIPTIONS}

    def __init__(self, context: SandboxContext) -> None:
        SandboxNetwork.__init__(self, context)
        XSwitches.__init__(self)
        self.media = XMediaStore(self, self)
        self.windows = FixedWindows()
        self.posts: list[XPost] = []
        """Oldest first."""
        self._posts: dict[str, XPost] = {}
        self._posts_of: dict[str, list[XPost]] = {}
        self._last_posted_at: dict[tuple[str, str, str], datetime] = {}
        """By account id, text, and the post that is replied to."""
        for number, (username, name, tier) in enumerate((("demo", "Demo", "None"), ("studio", "Studio", "Premium"))):
            account = XAccount(str(1000000000000000001 + number), username, name, tier)
            self.accounts[account.id] = account

    # --- accounts, tokens ----------------------------------------------------------------------------------------

    def add_account(self, username: str, *, name: str | None = None, **facts: Any) -> XAccount:
        """Create an account. `facts` are fields of `XAccount`, such as `protected=True`. Raise ValueError for a
        username that exists."""
        self.refuse_taken(username)
        return self.store_account(XAccount(self.new_id(), username, name or username, **facts))

    def new_token_pair(self, scopes: tuple[str, ...], *_: Any) -> tuple[str, str | None]:
        return secrets.token_urlsafe(72), secrets.token_urlsafe(72) if "offline.access" in scopes else None

    def admit(
        self, request: SandboxRequest, label: str, scopes: tuple[str, ...], headers: Headers
    ) -> ApiCaller[XAccount]:
        """The order is: bearer, rate limits, account, credits, scopes. All scopes are needed."""
        headers.append(transaction_header())
        token, now, limit = self.tokens.bearer(request.bearer), self.timestamp(), self.limits.get(label, 900)
        if token is None:
            headers.extend(window_headers("x-rate-limit", limit, limit, now + WINDOW_SECONDS))
            raise Refusal(problem(401))
        window = self.windows.count((label, token.account_id), limit, WINDOW_SECONDS, now)
        headers.extend(window_headers("x-rate-limit", limit, window.remaining, window.reset))
        over = window.over
        if label in self.daily_limits:
            day = self.windows.count(("day", label, token.account_id), self.daily_limits[label], DAY_SECONDS, now)
            headers.extend(window_headers("x-user-limit-24hour", day.limit, day.remaining, day.reset))
            over = over or day.over
        if over:
            raise Refusal(problem(429))
        account = self.account_of(token)
        if account is None:
            raise Refusal(problem(401))
        if account.suspended:
            detail = "The user used for authentication is suspended"
            raise Refusal(problem(403, detail, type_uri(self, "user-suspended")))
        if self.credits_depleted:
            raise Refusal(self.credits_reply(self.credits_depleted))
        caller = ApiCaller(token, account)
        if not caller.may(*scopes):
            raise forbidden()
        return caller

    # --- posts ---------------------------------------------------------------------------------------------------

    def posts_of(self, account: XAccount) -> list[XPost]:
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str) -> XPost | None:
        return self._posts.get(post_id)

    def was_posted_lately(self, account: XAccount, text: str, reply_to: str) -> bool:
        """Return whether the account posted this text in this place within the window for duplicates."""
        before = self._last_posted_at.get(_content_key(account.id, text, reply_to))
        return before is not None and self.seconds_since(before) < self.duplicate_window_seconds

    def add_post(self, post: XPost) -> None:
        self._keep_post(post)
        media = [json_facts(item, JOURNALED_MEDIA) for item in post.media]
        self.write("post", post_id=post.id, media=media, **json_facts(post, JOURNALED))

    def _keep_post(self, post: XPost) -> None:
        for item in post.media:
            item.posted_in.append(post.id)
        self.posts.append(post)
        self._posts[post.id] = post
        self._posts_of.setdefault(post.account_id, []).append(post)
        self._last_posted_at[_content_key(post.account_id, post.text, post.in_reply_to or "")] = post.created_at

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts)}

    def view(self) -> dict[str, Any]:
        return {
            "accounts": [asdict(account) for account in self.accounts.values()],
            "posts": [
                json_facts(post, VIEWED) | {"media": [json_facts(item, JOURNALED_MEDIA) for item in post.media]}
                for post in self.posts
            ],
        }

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_post(self, post_id: str, media: list[dict[str, Any]], **facts: Any) -> None:
        self.reserve_id(post_id)
        for item in media:
            self.reserve_id(item["id"])
            self.media.all[item["id"]] = XMedia(
                **item, owner_id=facts["account_id"], expires_at=0, declared_bytes=item["size"], finalized=True
            )
        kept = tuple(self.media.all[item["id"]] for item in media)
        post = from_facts(XPost, facts | {"id": post_id})
        post.media = kept
        self._keep_post(post)

    # --- scripted errors -----------------------------------------------------------------------------------------

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(status)

    def unauthorized_reply(self, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(401)

    def rate_limited_reply(self, seconds: float, told_in: str, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same
        """Return a 429. `told_in` says where its wait is given: in the window's headers, the day's, `retry-after` (as
        seconds or as a date), nowhere, or in `milliseconds`."""
        now = self.timestamp()
        reset = now + seconds
        headers: dict[str, Headers] = {
            "window": window_headers("x-rate-limit", 100, 0, reset),
            "day": [
                *window_headers("x-rate-limit", 100, 99, now + 1),
                *window_headers("x-user-limit-24hour", 100, 0, reset),
            ],
            "retry-after": [("retry-after", str(math.ceil(seconds)))],
            "date": [("retry-after", format_datetime(datetime.fromtimestamp(math.ceil(reset), UTC), usegmt=True))],
            "milliseconds": window_headers("x-rate-limit", 100, 0, reset * 1000),
            "nothing": [],
        }
        if told_in not in headers:
            raise ValueError(f"told_in is one of {', '.join(headers)}, not {told_in!r}")
        reply = problem(429)
        reply.headers = [*headers[told_in], transaction_header()]
        return reply

    def credits_reply(self, shape: int) -> Reply:
        if shape == 2:
            facts: dict[str, Any] = {
                "detail": "credits depleted",
                "status": 402,
                "title": "Payment Required",
                "type": "https://api.x.com/2/problems/credits-depleted",
            }
        else:
            enrolled = 1500000000000000001
            facts = {
                "account_id": enrolled,
                "title": "CreditsDepleted",
                "detail": f"Your enrolled account [{enrolled}] does not have any credits to fulfill this request.",
                "type": "https://api.twitter.com/2/problems/credits",
            }
        return json_reply(402, facts)


def _content_key(account_id: str, text: str, reply_to: str) -> tuple[str, str, str]:
    return account_id, " ".join(text.split()), reply_to


# --- refusals --------------------------------------------------------------------------------------------------------


def type_uri(x: XSwitches, slug: str) -> str:
    host = "api.x.com" if x.dialect == "new" else "api.twitter.com"
    return f"https://{host}/2/problems/{slug}"


def problem(status: int, detail: str = "", kind: str = "about:blank") -> Reply:
    """Return the plain shape. Without a detail it repeats the title."""
    title = responses.get(status, "Error")
    return json_reply(status, {"title": title, "detail": detail or title, "type": kind, "status": status})


def invalid(x: XSwitches, message: str, **parameters: Any) -> Refusal:
    """Return 400 in the validation shape. `parameters`: the names of the fields and their values."""
    return invalid_fields(x, [({name: [str(value)[:200]] for name, value in parameters.items()}, message)])


def invalid_fields(x: XSwitches, errors: list[tuple[dict[str, list[str]], str]]) -> Refusal:
    facts = {
        "errors": [{"parameters": parameters, "message": message} for parameters, message in errors],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": type_uri(x, "invalid-request"),
    }
    return Refusal(json_reply(400, facts))


def forbidden(detail: str = "") -> Refusal:
    return Refusal(problem(403, detail))


def window_headers(prefix: str, limit: int, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-limit", str(limit)),
        (f"{prefix}-remaining", str(remaining)),
        (f"{prefix}-reset", str(math.ceil(reset))),
    ]


def transaction_header() -> tuple[str, str]:
    return ("x-transaction-id", secrets.token_hex(8))
