"""X's accounts, uploads and posts, and the switches for what the real X does in several ways."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from socialpub.sandbox.network import OAuthSwitches

# MERGED from sandbox/x/switches.py: How this X behaves where the real one may behave in several ways, or can be as


@dataclass
class XSwitches(OAuthSwitches):
    dialect: Literal["new", "old"] = "new"
    """`new` (2.167: posts, api.x.com) or `old` (2.166: tweets, api.twitter.com) in answers."""
    one_dialect: bool = False
    """Queries in the names of the other dialect are 400. By default both are taken, each for itself: those who went on
    asking in the old names after the new document came out were answered, and some who asked in the new ones were not,
    so either may be refused on a given day."""

    # OAuth
    code_seconds: int = 30
    access_seconds: int = 7200
    refresh_seconds: int = 180 * 86400
    kill_family_on_reuse: bool = False
    """A refresh token used twice ends the newest pair too."""
    old_access_token_survives: bool = False
    """An access token goes on working after its pair was refreshed."""

    # media
    append_answers: int = 200
    """200 with `expires_at`, or 204 without a body."""
    media_seconds: int = 86400
    """An upload and its media id are usable that long."""
    processing: Literal["succeeds", "fails", "never_ends", "refused_at_post"] = "succeeds"
    """What becomes of the next finalized GIFs and videos: `succeeds`, `fails`, `never_ends`, `refused_at_post`."""
    processing_ticks: int = 2
    """Calls for the status until it has succeeded; 0: ready at once."""
    check_after_seconds: int = 1
    media_reuse_allowed: bool = True
    max_segment_bytes: int = 5 * 1024 * 1024

    # posts
    duplicate_window_seconds: int = 86400
    """The same text of the same account is refused that long; 0 never."""
    list_lag_seconds: float = 0
    """A post shows in lists only when it is that old."""
    missing_post_status: int = 404
    """404, or 200 with `errors` alone."""
    too_long_status: int = 400
    quotes_allowed: bool = False
    escapes_html: bool = False
    """Answer `&amp;`, `&lt;`, `&gt;` in texts."""
    strips_invisible: bool = False
    """Zero-width, direction and control characters are gone from what is shown of a text."""
    names_in_replies: bool = True
    """The name of the answered author stands in front of a reply's text."""
    leaves_out: list[str] = field(default_factory=list)
    """Members of posts that reading leaves out although they were asked for, as after a hydration that failed."""
    needs_text: bool = False
    """A body without `text` is 400, with media too, as behind X's gateway. In front of it an absent text is `""`."""
    blocked_hosts: list[str] = field(default_factory=list)

    # money and limits
    credits_depleted: int = 0
    """1 or 2: every call is answered 402, in that shape."""
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "POST /2/tweets": 100,
            "GET /2/tweets/:id": 900,
            "DELETE /2/tweets/:id": 50,
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
    """Calls of one user in 24 hours; a label in here also gets the 24-hour headers."""
    app_daily_limits: dict[str, int] = field(default_factory=dict)
    """The same for all users of one app."""


# MERGED from sandbox/x/models.py: What X keeps: accounts, uploads, posts.

SUBSCRIPTIONS = ("None", "Basic", "Premium", "PremiumPlus")
LONG_POST_TIERS = ("Premium", "PremiumPlus")
IMAGE, GIF, VIDEO = "tweet_image", "tweet_gif", "tweet_video"
POSTABLE = {IMAGE: "image", GIF: "image", VIDEO: "video", "amplify_video": "video"}
"""Categories that a post may carry, and the kind of bytes they hold."""
KEY_PREFIX = {IMAGE: "3", GIF: "16", VIDEO: "7", "amplify_video": "13", "dm_image": "3", "dm_gif": "16"}
MAX_BYTES = {
    IMAGE: 5 * 1024 * 1024,
    "dm_image": 5 * 1024 * 1024,
    GIF: 15 * 1024 * 1024,
    "dm_gif": 15 * 1024 * 1024,
    "subtitles": 512 * 1024,
}
MAX_VIDEO_BYTES = 16 * 1024**3


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
    """From which word the picture is drawn; empty: the username."""

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
    other_owners: tuple[str, ...]
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
    looks: int = 0
    early_looks: int = 0
    """Calls for the status that came before `check_after_secs` was over."""
    looked_at: datetime | None = None
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
    """As X gives it back, with t.co links."""
    entities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    conversation_id: str = ""
    """The post that began it all."""
    deleted_at: datetime | None = None

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
