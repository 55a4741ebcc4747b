"""Uploads: what is kept of them, and how they become usable.

Bytes are kept only while they fit on the shelf; sizes and hashes always.
"""

import hashlib
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.shelf import Shelf as Shelf
from socialpub.sandbox.sniff import dimensions, sniff

if TYPE_CHECKING:
    from socialpub.sandbox.x.network import X

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
class Media:
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
    """Empty when the segments came out of order and no longer lay on the shelf."""
    width: int = 0
    height: int = 0
    alt_text: str | None = None
    finalized: bool = False
    state: str = ""
    """`pending`, `in_progress`, `succeeded`, `failed`; empty: needs no processing."""
    fate: str = "succeeds"
    looks: int = 0
    early_looks: int = 0
    """Looks at the status that came before `check_after_secs` was over."""
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
class _Hashing:
    """Hashes segments as they come in order, so that the bytes need not be kept; the last one may come twice."""

    done: Any = field(default_factory=hashlib.sha256)
    before_last: Any = None
    next_index: int = 0
    in_order: bool = True

    def add(self, index: int, data: bytes) -> None:
        if index == self.next_index - 1 and self.before_last is not None:
            self.done = self.before_last
        elif index == self.next_index:
            self.next_index += 1
        else:
            self.in_order = False
            return
        self.before_last = self.done.copy()
        self.done.update(data)


class MediaRoom:
    """All uploads of the network."""

    def __init__(self, x: "X") -> None:
        self._x = x
        self.shelf = Shelf()
        self.all: dict[str, Media] = {}
        self._hashing: dict[str, _Hashing] = {}

    def begin(
        self, category: str, mime_type: str, total_bytes: int, owner_id: str, other_owners: tuple[str, ...]
    ) -> Media:
        media_id = self._x.world.new_id()
        media = Media(
            media_id,
            f"{KEY_PREFIX.get(category, '7')}_{media_id}",
            category,
            mime_type,
            owner_id,
            other_owners,
            self._now() + self._x.media_seconds,
            total_bytes,
        )
        self.all[media_id] = media
        self._hashing[media_id] = _Hashing()
        return media

    def append(self, media: Media, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self._hashing[media.id].add(index, data)
        self.shelf.put((media.id, index), data)

    def finalize(self, media: Media) -> None:
        """All segments are there: the media is whole and, if it needs it, being processed."""
        indexes = sorted(media.segments)
        pieces = [self.shelf.take((media.id, index)) for index in indexes]
        whole = b"".join(piece for piece in pieces if piece is not None) if None not in pieces else None
        hashing = self._hashing.pop(media.id)
        media.size = sum(media.segments.values())
        if hashing.in_order:
            media.sha256 = hashing.done.hexdigest()
        elif whole is not None:
            media.sha256 = hashlib.sha256(whole).hexdigest()
        begin = whole if whole is not None else pieces[0] or b""
        media.width, media.height = dimensions(begin)
        if whole is not None:
            self.shelf.put(media.id, whole)
        media.finalized = True
        media.fate = self._x.processing
        self._start_processing(media, sniff(begin))

    def _start_processing(self, media: Media, found: str) -> None:
        wanted = POSTABLE.get(media.category)
        unfit = bool(found and wanted) and not found.startswith(f"{wanted}/")
        if media.category in (IMAGE, "dm_image", "subtitles"):
            media.state = "failed" if unfit else ""
        elif unfit or (media.fate == "fails" and self._x.processing_ticks == 0):
            media.state = "failed"
        else:
            media.state = "succeeded" if self._x.processing_ticks == 0 and media.fate != "never_ends" else "pending"
        media.looked_at = self._x.world.now()

    def look(self, media: Media) -> None:
        """One look at the status; processing moves on with every one."""
        now = self._x.world.now()
        if media.state not in ("pending", "in_progress"):
            return
        if media.looked_at is not None and (now - media.looked_at).total_seconds() < self._x.check_after_seconds:
            media.early_looks += 1
        media.looked_at = now
        media.looks += 1
        if media.looks < self._x.processing_ticks or media.fate == "never_ends":
            media.state = "in_progress"
        else:
            media.state = "failed" if media.fate == "fails" else "succeeded"

    def alive(self, media_id: str) -> Media | None:
        media = self.all.get(media_id)
        return media if media is not None and self._now() < media.expires_at else None

    def usable(self, media_id: str, account_id: str) -> Media | None:
        """The media when a post of this account may carry it now."""
        media = self.alive(media_id)
        if (
            media is None
            or not media.ready
            or media.category not in POSTABLE
            or media.fate == "refused_at_post"
            or account_id not in (media.owner_id, *media.other_owners)
            or (media.posted_in and not self._x.media_reuse_allowed)
        ):
            return None
        return media

    def seconds_left(self, media: Media) -> int:
        return max(0, math.floor(media.expires_at - self._now()))

    def _now(self) -> float:
        return self._x.world.now().timestamp()
