"""X's accounts, uploads and posts."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from socialpub.sandbox.media import dimensions, sniff

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
        kept = [piece for piece in pieces if piece is not None]
        begin = pieces[0] or b""
        media.size = sum(media.segments.values())
        if len(kept) == len(pieces):
            begin = b"".join(kept)
            media.sha256 = hashlib.sha256(begin).hexdigest()
            self._network.cache.put(media.id, begin)
        media.width, media.height = dimensions(begin)
        media.finalized, media.fate = True, fate
        found = sniff(begin)
        ends_at_once = self._network.processing_ticks == 0 and fate != "never_ends"
        if found and not found.startswith(f"{KINDS[media.category]}/"):
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
