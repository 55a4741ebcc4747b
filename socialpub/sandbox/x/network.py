"""The memory of X (accounts, posts and tokens), and X's refusals."""

import math
import secrets
from datetime import datetime
from http.client import responses
from typing import Any, ClassVar

from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, json_reply
from socialpub.sandbox.network import ApiCaller, SandboxNetwork
from socialpub.sandbox.x.models import SUBSCRIPTIONS, XAccount, XMedia, XMediaStore, XPost

PROBLEMS = "https://api.x.com/2/problems"

_ENROLLED = 1500000000000000001
ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "credits_depleted": (
        402,
        {
            "account_id": _ENROLLED,
            "title": "CreditsDepleted",
            "detail": f"Your enrolled account [{_ENROLLED}] does not have any credits to fulfill this request.",
            "type": "https://api.twitter.com/2/problems/credits",
        },
    )
}


class XSandbox(SandboxNetwork[XAccount]):
    errors = ERRORS
    name = "x"
    label = "X"
    endpoints = (
        "authorize", "token", "revoke", "me", "upload_one_shot", "upload_initialize", "upload_append",
        "upload_finalize", "upload_status", "metadata", "create_post", "list_posts",
    )  # fmt: skip
    default_scopes = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
    reveals_refresh_expiry = False
    window_seconds = 900
    account_kind = XAccount
    account_fields = ("subscription_type", "protected", "suspended", "max_length")
    account_choices: ClassVar = {"subscription_type": SUBSCRIPTIONS}

    code_seconds = 30
    access_seconds = 7200
    refresh_seconds = 180 * 86400
    old_access_token_survives = False
    media_seconds = 86400
    """How long an upload and its media id are usable."""
    processing_ticks = 2
    """Calls for the status until a GIF or video has succeeded. 0: ready at once."""
    check_after_seconds = 1
    duplicate_window_seconds = 86400
    """How long the same text of the same account is refused. 0: never."""
    list_lag_seconds: float = 0
    """How old a post must be to appear in lists."""
    default_limits: ClassVar = {"POST /2/tweets": 100, "GET /2/users/me": 75}
    """Calls of one user in 15 minutes. The others: 900."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.media = XMediaStore(self)
        self._posts = self.table("posts", XPost, on_keep=self._keep_post)
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
        return self.accounts.save(XAccount(self.new_id(), username, name or username, **facts))

    def new_token_pair(self, scopes: tuple[str, ...], *_: Any) -> tuple[str, str | None]:
        return secrets.token_urlsafe(72), secrets.token_urlsafe(72) if "offline.access" in scopes else None

    def window_headers(self, window: FixedWindow) -> Headers:
        return [*window_headers("x-rate-limit", window.limit, window.remaining, window.reset), transaction_header()]

    def check_caller(self, caller: ApiCaller[XAccount], label: str, scopes: tuple[str, ...]) -> None:  # noqa: ARG002
        if caller.account.suspended:
            detail = "The user used for authentication is suspended"
            raise Refusal(problem(403, detail, f"{PROBLEMS}/user-suspended"))
        if not caller.may(*scopes):
            raise forbidden()

    # --- posts ---------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[XPost]:
        """All posts, oldest first."""
        return list(self._posts.values())

    def posts_of(self, account: XAccount) -> list[XPost]:
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str) -> XPost | None:
        return self._posts.get(post_id)

    def was_posted_lately(self, account: XAccount, text: str, reply_to: str) -> bool:
        """Return whether the account posted this text in this place within the window for duplicates."""
        before = self._last_posted_at.get((account.id, " ".join(text.split()), reply_to))
        return before is not None and self.seconds_since(before) < self.duplicate_window_seconds

    def add_post(self, post: XPost) -> None:
        for item in post.media:
            item.posted_in.append(post.id)
        self._posts.save(post)

    def _keep_post(self, post: XPost) -> None:
        for item in post.media:
            self.media.all[item.id] = item
        self._posts_of.setdefault(post.account_id, []).append(post)
        content = (post.account_id, " ".join(post.text.split()), post.in_reply_to or "")
        self._last_posted_at[content] = post.created_at

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self._posts)}

    def usable_media(self, media_id: str, account: XAccount) -> XMedia | None:
        """Return the media if a post of this account may carry it now."""
        media = self.media.alive(media_id)
        return media if media is not None and media.ready and account.id == media.owner_id else None

    def fate(self) -> str:
        """Return what happens to the next GIF or video: `succeeds`, `fails`, `never_ends`."""
        return "succeeds"

    # --- scripted errors -----------------------------------------------------------------------------------------

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(status)

    def unauthorized_reply(self, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(401).with_headers([transaction_header()])

    def rate_limited_reply(self, seconds: float, told_in: str, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same
        headers = {
            "window": window_headers("x-rate-limit", 100, 0, self.timestamp() + seconds),
            "retry-after": [("retry-after", str(math.ceil(seconds)))],
            "nothing": [],
        }
        if told_in not in headers:
            raise ValueError(f"told_in is one of {', '.join(headers)}, not {told_in!r}")
        return problem(429).with_headers([*headers[told_in], transaction_header()])

    def named_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        status, facts = ERRORS[code]
        return json_reply(status, facts)


# --- refusals --------------------------------------------------------------------------------------------------------


def problem(status: int, detail: str = "", kind: str = "about:blank") -> Reply:
    """Return the plain shape. Without a detail it repeats the title."""
    title = responses.get(status, "Error")
    return json_reply(status, {"title": title, "detail": detail or title, "type": kind, "status": status})


def invalid(message: str, **parameters: Any) -> Refusal:
    """Return 400 in the validation shape. `parameters`: the names of the fields and their values."""
    return invalid_fields([({name: [str(value)[:200]] for name, value in parameters.items()}, message)])


def invalid_fields(errors: list[tuple[dict[str, list[str]], str]]) -> Refusal:
    facts = {
        "errors": [{"parameters": parameters, "message": message} for parameters, message in errors],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": f"{PROBLEMS}/invalid-request",
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
