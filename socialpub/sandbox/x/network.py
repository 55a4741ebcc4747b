"""The memory of X (accounts, uploads and posts), and X's refusals."""

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from http.client import responses
from typing import Annotated, Any, ClassVar

from pydantic import Field

from socialpub.sandbox.media import dimensions, sniff
from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, json_reply
from socialpub.sandbox.network import ApiCaller, SandboxNetwork

SUBSCRIPTIONS = ("None", "Basic", "Premium", "PremiumPlus")
LONG_POST_TIERS = ("Premium", "PremiumPlus")
IMAGE, GIF, VIDEO = "tweet_image", "tweet_gif", "tweet_video"
KINDS = {IMAGE: "image", GIF: "image", VIDEO: "video"}
"""What bytes the media of a category contain."""
KEY_PREFIX = {IMAGE: "3", GIF: "16", VIDEO: "7"}
MAX_BYTES = {IMAGE: 5 * 1024 * 1024, GIF: 15 * 1024 * 1024, VIDEO: 16 * 1024**3}


@dataclass(slots=True)
class XAccount:
    id: str
    username: str
    name: str
    subscription_type: str = "None"
    """`None`, `Basic`, `Premium`, `PremiumPlus`."""
    protected: bool = False
    suspended: bool = False
    max_length: int | None = None
    """Overrides what follows from the subscription."""
    picture: str = ""

    @property
    def longest_post(self) -> int:
        if self.max_length is not None:
            return self.max_length
        return 25_000 if self.subscription_type in LONG_POST_TIERS else 280

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
    """`pending`, `in_progress`, `succeeded`, `failed`; empty: needs no processing."""
    fate: str = "succeeds"
    polls: int = 0
    posted_in: list[str] = field(default_factory=list)
    segments: Annotated[dict[int, int], Field(exclude=True)] = field(default_factory=dict)
    """Index and size of what was received."""

    @property
    def page_kind(self) -> str:
        return "photo" if self.category == IMAGE else "video"

    @property
    def ready(self) -> bool:
        return self.finalized and self.state in ("", "succeeded")


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
    def made_with_ai(self) -> bool:
        return bool(self.options.get("made_with_ai"))

    @property
    def paid_partnership(self) -> bool:
        return bool(self.options.get("paid_partnership"))

    @property
    def reply_settings(self) -> str:
        return str(self.options.get("reply_settings", "everyone"))


class XMediaStore:
    """All uploads. Their bytes are kept only while there is room, their sizes always."""

    def __init__(self, network: Any) -> None:  # XSandbox, which imports this file
        self._network = network
        self.all: dict[str, XMedia] = {}

    def begin(self, category: str, mime_type: str, total_bytes: int, owner_id: str) -> XMedia:
        media_id = self._network.new_id()
        key, expires_at = f"{KEY_PREFIX[category]}_{media_id}", self._network.timestamp() + self._network.media_seconds
        media = XMedia(media_id, key, category, mime_type, owner_id, expires_at, total_bytes)
        self.all[media_id] = media
        return media

    def append(self, media: XMedia, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self._network.cache.put((media.id, index), data)

    def finalize(self, media: XMedia, fate: str) -> None:
        """Make a whole file of the segments, and begin its processing."""
        pieces = [self._network.cache.take((media.id, index)) for index in sorted(media.segments)]
        stored = [piece for piece in pieces if piece is not None]
        begin = pieces[0] or b""
        media.size = sum(media.segments.values())
        if len(stored) == len(pieces):
            begin = b"".join(stored)
            media.sha256 = hashlib.sha256(begin).hexdigest()
            self._network.cache.put(media.id, begin)
        media.width, media.height = dimensions(begin)
        media.finalized, media.fate = True, fate
        mime_type = sniff(begin)
        ends_at_once = self._network.processing_ticks == 0 and fate != "never_ends"
        if mime_type and not mime_type.startswith(f"{KINDS[media.category]}/"):
            media.state = "failed"
        elif media.category != IMAGE:
            media.state = "pending" if not ends_at_once else "failed" if fate == "fails" else "succeeded"

    def poll(self, media: XMedia) -> None:
        """Count one call for the status. Every call advances the processing."""
        if media.state not in ("pending", "in_progress"):
            return
        media.polls += 1
        if media.polls < self._network.processing_ticks or media.fate == "never_ends":
            media.state = "in_progress"
        else:
            media.state = "failed" if media.fate == "fails" else "succeeded"

    def alive(self, media_id: str) -> XMedia | None:
        media = self.all.get(media_id)
        return media if media is not None and self._network.timestamp() < media.expires_at else None

    def seconds_left(self, media: XMedia) -> int:
        return max(0, int(media.expires_at - self._network.timestamp()))


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

    def limited_reply(self, endpoint: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        return problem(429).with_headers([transaction_header()])

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
