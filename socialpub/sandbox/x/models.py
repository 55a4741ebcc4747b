"""X's accounts, uploads and posts, and the switches for what the real X does in several ways."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass
class XSwitches:
    """How this X behaves where the real one may behave in several ways, or can be asked to misbehave.

    Set them on `world.x` at any time. The defaults are the strict or the usual reading.
    """

    dialect: Literal["new", "old"] = "new"
    """Of responses: `new` (2.167: posts, api.x.com) or `old` (2.166: tweets, api.twitter.com)."""
    one_dialect: bool = False
    """Queries in the names of the other dialect are 400. By default each of both is accepted: the real X went on
    answering the old names after the new document came out, and refused some queries in the new ones."""

    # OAuth
    code_seconds: int = 30
    access_seconds: int = 7200
    refresh_seconds: int = 180 * 86400
    kill_family_on_reuse: bool = False
    """A refresh token used twice ends the newest pair too."""
    old_access_token_survives: bool = False
    """An access token still works after its pair was refreshed."""

    # media
    append_answers: int = 200
    """200 with `expires_at`, or 204 without a body."""
    media_seconds: int = 86400
    """How long an upload and its media id are usable."""
    processing: Literal["succeeds", "fails", "never_ends", "refused_at_post"] = "succeeds"
    """What happens to the next finalized GIFs and videos."""
    processing_ticks: int = 2
    """Calls for the status until it has succeeded. 0: ready at once."""
    check_after_seconds: int = 1
    media_reuse_allowed: bool = True

    # posts
    duplicate_window_seconds: int = 86400
    """How long the same text of the same account is refused. 0: never."""
    list_lag_seconds: float = 0
    """How old a post must be to appear in lists."""
    too_long_status: int = 400
    quotes_allowed: bool = False
    escapes_html: bool = False
    """Return `&amp;`, `&lt;`, `&gt;` in texts."""
    strips_invisible: bool = False
    """Return texts without zero-width, direction and control characters."""
    names_in_replies: bool = True
    """Begin a reply's text with the name of the author of its parent."""
    leaves_out: list[str] = field(default_factory=list)
    """Fields of posts that a list omits although the query names them, as after a failed hydration."""
    needs_text: bool = False
    """A body without `text` is 400, even with media, as behind X's gateway. Without it, an absent text is `""`."""
    blocked_hosts: list[str] = field(default_factory=list)

    # money and limits
    credits_depleted: int = 0
    """1 or 2: every call gets a 402 in that shape."""
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "POST /2/tweets": 100,
            "GET /2/users/me": 75,
            "GET /2/users/:id/tweets": 900,
            "POST /2/media/upload": 500,
            "GET /2/media/upload": 1000,
            "POST /2/media/upload/initialize": 1875,
            "POST /2/media/upload/:id/append": 1875,
            "POST /2/media/upload/:id/finalize": 1875,
            "POST /2/media/metadata": 500,
        }
    )
    """Calls of one user in 15 minutes."""
    daily_limits: dict[str, int] = field(default_factory=dict)
    """Calls of one user in 24 hours. These calls also get the 24-hour headers."""


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
    """Empty when the segments came out of order and were no longer kept."""
    width: int = 0
    height: int = 0
    alt_text: str | None = None
    finalized: bool = False
    state: str = ""
    """`pending`, `in_progress`, `succeeded`, `failed`; empty: needs no processing."""
    fate: str = "succeeds"
    polls: int = 0
    early_polls: int = 0
    """Calls for the status before `check_after_secs` was over."""
    polled_at: datetime | None = None
    posted_in: list[str] = field(default_factory=list)
    segments: dict[int, int] = field(default_factory=dict)
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
    received_at: datetime | None = None
    """When the call's first byte arrived, by the machine's clock."""
    received_monotonic: float = 0.0
    shown_text: str = ""
    """As X returns it, with t.co links."""
    entities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
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
