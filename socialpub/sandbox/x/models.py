"""X's accounts, uploads and posts, and the switches for behavior that varies on the real X."""

import hashlib
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from socialpub.sandbox.media import dimensions, sniff
from socialpub.sandbox.network import SandboxNetwork


@dataclass
class XSwitches:
    """How this X behaves where the real one may behave in several ways, or can be asked to misbehave.

    Set them on `world.x` at any time. The defaults are the strict or the usual reading.
    """

    dialect: Literal["new", "old"] = "new"
    """Of responses: `new` (2.167: posts, api.x.com) or `old` (2.166: tweets, api.twitter.com)."""
    one_dialect: bool = False
    """Queries in the names of the other dialect are 400. By default, both are accepted. After the new document, the
    real X still accepted the old names and refused some queries in the new names."""

    # OAuth
    code_seconds: int = 30
    access_seconds: int = 7200
    refresh_seconds: int = 180 * 86400
    kill_family_on_reuse: bool = False
    """A second use of a refresh token also ends the newest pair."""
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
    reply_lag_seconds: float = 0
    """How old a post must be before X accepts replies to it. Before, X reports that the post is not visible."""
    too_long_status: int = 400
    escapes_html: bool = False
    """Return `&amp;`, `&lt;`, `&gt;` in texts."""
    strips_invisible: bool = False
    """Return texts without zero-width, direction and control characters."""
    leaves_out: list[str] = field(default_factory=list)
    """Fields of posts that a list omits although the query names them, as after a failed hydration."""
    needs_text: bool = False
    """A body without `text` is 400, even with media, as behind X's gateway. Without it, an absent text is `""`."""

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
    received_monotonic: float = 0.0
    """When the call's first byte arrived, by the machine's clock."""
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


class XMediaStore:
    """All uploads. Their bytes are kept only while there is room, their sizes always."""

    def __init__(self, switches: XSwitches, network: SandboxNetwork[XAccount]) -> None:
        self._switches = switches
        self._network = network
        self.all: dict[str, XMedia] = {}

    def begin(self, category: str, mime_type: str, total_bytes: int, owner_id: str) -> XMedia:
        media_id = self._network.new_id()
        key, expires_at = f"{KEY_PREFIX[category]}_{media_id}", self._network.timestamp() + self._switches.media_seconds
        media = XMedia(media_id, key, category, mime_type, owner_id, expires_at, total_bytes)
        self.all[media_id] = media
        return media

    def append(self, media: XMedia, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self._network.cache.put((media.id, index), data)

    def finalize(self, media: XMedia) -> None:
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
        media.finalized = True
        media.fate = self._switches.processing
        self._start_processing(media, sniff(begin))

    def _start_processing(self, media: XMedia, found: str) -> None:
        unfit = bool(found) and not found.startswith(f"{KINDS[media.category]}/")
        ends_at_once = self._switches.processing_ticks == 0 and media.fate != "never_ends"
        if unfit or (media.category != IMAGE and media.fate == "fails" and ends_at_once):
            media.state = "failed"
        elif media.category != IMAGE:
            media.state = "succeeded" if ends_at_once else "pending"

    def poll(self, media: XMedia) -> None:
        """Count one call for the status. Every call advances the processing."""
        if media.state not in ("pending", "in_progress"):
            return
        media.polls += 1
        if media.polls < self._switches.processing_ticks or media.fate == "never_ends":
            media.state = "in_progress"
        else:
            media.state = "failed" if media.fate == "fails" else "succeeded"

    def alive(self, media_id: str) -> XMedia | None:
        media = self.all.get(media_id)
        return media if media is not None and self._network.timestamp() < media.expires_at else None

    def usable(self, media_id: str, account_id: str) -> XMedia | None:
        """Return the media if a post of this account may carry it now."""
        media = self.alive(media_id)
        if (
            media is None
            or not media.ready
            or media.fate == "refused_at_post"
            or account_id != media.owner_id
            or (media.posted_in and not self._switches.media_reuse_allowed)
        ):
            return None
        return media

    def seconds_left(self, media: XMedia) -> int:
        return max(0, math.floor(media.expires_at - self._network.timestamp()))
