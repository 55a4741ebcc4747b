"""What X keeps: accounts, uploads, posts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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
