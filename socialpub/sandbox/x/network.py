"""The memory of X (accounts, uploads and posts), and X's refusals."""

import math
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from http.client import responses
from typing import Annotated, Any, ClassVar

from pydantic import Field

from socialpub.sandbox.media import dimensions, sha256, sniff
from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, json_reply
from socialpub.sandbox.network import COMMON_FIELDS, YES_OR_NO
from socialpub.sandbox.oauth import OAuthNetwork

SUBSCRIPTIONS = ("None", "Basic", "Premium", "PremiumPlus")
IMAGE, GIF, VIDEO = "tweet_image", "tweet_gif", "tweet_video"
KINDS = {IMAGE: "image/", GIF: "image/", VIDEO: "video/"}
"""What bytes the media of a category contain."""
KEY_PREFIX = {IMAGE: "3", GIF: "16", VIDEO: "7"}
PENDING, IN_PROGRESS, SUCCEEDED, FAILED = "pending", "in_progress", "succeeded", "failed"


@dataclass(slots=True)
class XAccount:
    id: str
    username: str
    name: str
    subscription_type: str = "None"
    protected: bool = False
    suspended: bool = False
    picture: str = ""

    @property
    def verified_type(self) -> str:
        return "none" if self.subscription_type == "None" else "blue"


@dataclass(slots=True)
class XMedia:
    id: str
    key: str
    category: str
    mime_type: str
    owner_id: str
    expires_at: float
    """Unix seconds."""
    declared_bytes: int
    size: int = 0
    sha256: str = ""
    """Empty when the segments were too large to keep."""
    width: int = 0
    height: int = 0
    alt_text: str | None = None
    finalized: bool = False
    state: str = ""
    """Empty: needs no processing."""
    polls: int = 0
    posted_in: list[str] = field(default_factory=list)
    segments: Annotated[dict[int, int], Field(exclude=True)] = field(default_factory=dict)
    """Index and size of what was received."""


@dataclass(slots=True)
class XPost:
    id: str
    account_id: str
    username: str
    text: str
    """As it was sent (NFC)."""
    created_at: datetime
    """By the world's clock."""
    media: tuple[XMedia, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """The other fields of the request."""
    client_id: str | None = None
    """The app that made it."""
    received_monotonic: float = 0.0
    """When the call's first byte arrived, by the machine's clock."""
    conversation_id: str = ""
    """The id of the first post of the conversation."""

    @property
    def in_reply_to(self) -> str | None:
        reply = self.options.get("reply")
        return str(reply["in_reply_to_tweet_id"]) if reply else None

    @property
    def reply_settings(self) -> str:
        return str(self.options.get("reply_settings", "everyone"))


# --- refusals --------------------------------------------------------------------------------------------------------

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
    ),
    "unauthorized": (401, {}),
    "rate_limited": (429, {}),
}


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


def forbidden(detail: str = "", kind: str = "about:blank") -> Refusal:
    return Refusal(problem(403, detail, kind))


def window_headers(prefix: str, limit: int, remaining: int, reset: float) -> Headers:
    return [
        (f"{prefix}-limit", str(limit)),
        (f"{prefix}-remaining", str(remaining)),
        (f"{prefix}-reset", str(math.ceil(reset))),
    ]


def transaction_header() -> tuple[str, str]:
    return ("x-transaction-id", secrets.token_hex(8))


# --- the memory ------------------------------------------------------------------------------------------------------


class XNetwork(OAuthNetwork):
    name = "x"
    label = "X"
    errors = ERRORS
    unauthorized_code, limited_code = "unauthorized", "rate_limited"
    default_scopes = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
    reveals_refresh_expiry = False
    window_seconds = 900
    default_limits: ClassVar = {"POST /2/tweets": 100, "GET /2/users/me": 75}
    """Calls of one user in 15 minutes. The others: 900."""
    account_kind = XAccount
    account_fields: ClassVar = {
        **COMMON_FIELDS,
        "subscription_type": SUBSCRIPTIONS,
        "protected": YES_OR_NO,
        "suspended": YES_OR_NO,
    }
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

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.media: dict[str, XMedia] = {}
        """All uploads. Their bytes are kept only while there is room, their sizes always."""
        self.post_table = self.table("posts", XPost, on_keep=self._keep_post)
        self._posts_of: dict[str, list[XPost]] = {}
        self._last_posted_at: dict[tuple[str, str, str], datetime] = {}
        """By account id, text, and the post that is replied to."""
        for number, (username, name, tier) in enumerate((("demo", "Demo", "None"), ("studio", "Studio", "Premium"))):
            account = self.account_kind(str(1000000000000000001 + number), username, name, tier)
            self.accounts[account.id] = account

    def new_account(self, username: str, name: str, **facts: Any) -> XAccount:
        account: XAccount = self.account_kind(self.new_id(), username, name, **facts)
        return account

    def new_token_pair(self, scopes: tuple[str, ...], *_: Any) -> tuple[str, str | None]:
        return secrets.token_urlsafe(72), secrets.token_urlsafe(72) if "offline.access" in scopes else None

    def window_headers(self, window: FixedWindow) -> Headers:
        return [*window_headers("x-rate-limit", window.limit, window.remaining, window.reset), transaction_header()]

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(status)

    def error_reply(self, code: str, endpoint: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        status, facts = ERRORS[code]
        return json_reply(status, facts) if facts else problem(status).with_headers([transaction_header()])

    # --- uploads -------------------------------------------------------------------------------------------------

    def begin_upload(self, category: str, mime_type: str, total_bytes: int, owner_id: str) -> XMedia:
        media_id = self.new_id()
        key, expires_at = f"{KEY_PREFIX[category]}_{media_id}", self.timestamp() + self.media_seconds
        media = self.media[media_id] = XMedia(media_id, key, category, mime_type, owner_id, expires_at, total_bytes)
        return media

    def add_segment(self, media: XMedia, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self.cache.put((media.id, index), data)

    def finish_upload(self, media: XMedia) -> None:
        """Make a whole file of the segments, and begin its processing."""
        data = b"".join(self.cache.pop((media.id, index), b"") for index in sorted(media.segments))
        media.size, media.finalized = sum(media.segments.values()), True
        if len(data) == media.size:
            media.sha256 = sha256(data)
            self.cache.put(media.id, data)
        media.width, media.height = dimensions(data)
        kind = sniff(data)
        if kind and not kind.startswith(KINDS[media.category]):
            media.state = FAILED
        elif media.category != IMAGE:
            media.state = PENDING
            if self.processing_ticks == 0:
                self.process(media)

    def process(self, media: XMedia) -> None:
        """Advance the processing, as every call for the status does."""
        if media.state not in (PENDING, IN_PROGRESS):
            return
        media.polls += 1
        media.state = IN_PROGRESS if media.polls < self.processing_ticks else SUCCEEDED

    def find_media(self, media_id: str) -> XMedia | None:
        media = self.media.get(media_id)
        return media if media is not None and self.timestamp() < media.expires_at else None

    def usable_media(self, media_id: str, account: XAccount) -> XMedia | None:
        """Return the media if a post of this account may carry it now."""
        media = self.find_media(media_id)
        is_ready = media is not None and media.finalized and media.state in ("", SUCCEEDED)
        return media if media is not None and is_ready and account.id == media.owner_id else None

    # --- posts ---------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[XPost]:
        """All posts, oldest first."""
        return list(self.post_table.values())

    def posts_of(self, account: XAccount) -> list[XPost]:
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str | None) -> XPost | None:
        return self.post_table.get(post_id)

    def was_posted_lately(self, account: XAccount, text: str, reply_to: str) -> bool:
        """Return whether the account posted this text in this place within the window for duplicates."""
        before = self._last_posted_at.get((account.id, " ".join(text.split()), reply_to))
        return before is not None and self.seconds_since(before) < self.duplicate_window_seconds

    def _keep_post(self, post: XPost) -> None:
        for item in post.media:
            self.media[item.id] = item
        self._posts_of.setdefault(post.account_id, []).append(post)
        content = (post.account_id, " ".join(post.text.split()), post.in_reply_to or "")
        self._last_posted_at[content] = post.created_at

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.post_table)}
