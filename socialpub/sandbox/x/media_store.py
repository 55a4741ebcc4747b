"""All uploads of X, and how they become usable.

Bytes are kept only while there is room; sizes and hashes always.
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

from socialpub.sandbox.byte_cache import ByteCache
from socialpub.sandbox.context import SandboxContext
from socialpub.sandbox.sniff import dimensions, sniff
from socialpub.sandbox.x.models import IMAGE, KEY_PREFIX, POSTABLE, XMedia
from socialpub.sandbox.x.switches import XSwitches


@dataclass(slots=True)
class SegmentHash:
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


class XMediaStore:
    """All uploads of the network."""

    def __init__(self, switches: XSwitches, context: SandboxContext) -> None:
        self._switches = switches
        self._context = context
        self.cache = ByteCache()
        self.all: dict[str, XMedia] = {}
        self._hashing: dict[str, SegmentHash] = {}

    def begin(
        self, category: str, mime_type: str, total_bytes: int, owner_id: str, other_owners: tuple[str, ...]
    ) -> XMedia:
        media_id = self._context.ids.new()
        media = XMedia(
            media_id,
            f"{KEY_PREFIX.get(category, '7')}_{media_id}",
            category,
            mime_type,
            owner_id,
            other_owners,
            self._now() + self._switches.media_seconds,
            total_bytes,
        )
        self.all[media_id] = media
        self._hashing[media_id] = SegmentHash()
        return media

    def append(self, media: XMedia, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self._hashing[media.id].add(index, data)
        self.cache.put((media.id, index), data)

    def finalize(self, media: XMedia) -> None:
        """All segments are there: the media is whole and, if it needs it, being processed."""
        indexes = sorted(media.segments)
        pieces = [self.cache.take((media.id, index)) for index in indexes]
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
            self.cache.put(media.id, whole)
        media.finalized = True
        media.fate = self._switches.processing
        self._start_processing(media, sniff(begin))

    def _start_processing(self, media: XMedia, found: str) -> None:
        wanted = POSTABLE.get(media.category)
        unfit = bool(found and wanted) and not found.startswith(f"{wanted}/")
        if media.category in (IMAGE, "dm_image", "subtitles"):
            media.state = "failed" if unfit else ""
        elif unfit or (media.fate == "fails" and self._switches.processing_ticks == 0):
            media.state = "failed"
        else:
            media.state = (
                "succeeded" if self._switches.processing_ticks == 0 and media.fate != "never_ends" else "pending"
            )
        media.looked_at = self._context.clock.now()

    def poll(self, media: XMedia) -> None:
        """One call for the status; processing moves on with every one."""
        now = self._context.clock.now()
        if media.state not in ("pending", "in_progress"):
            return
        if media.looked_at is not None and (now - media.looked_at).total_seconds() < self._switches.check_after_seconds:
            media.early_looks += 1
        media.looked_at = now
        media.looks += 1
        if media.looks < self._switches.processing_ticks or media.fate == "never_ends":
            media.state = "in_progress"
        else:
            media.state = "failed" if media.fate == "fails" else "succeeded"

    def alive(self, media_id: str) -> XMedia | None:
        media = self.all.get(media_id)
        return media if media is not None and self._now() < media.expires_at else None

    def usable(self, media_id: str, account_id: str) -> XMedia | None:
        """The media when a post of this account may carry it now."""
        media = self.alive(media_id)
        if (
            media is None
            or not media.ready
            or media.category not in POSTABLE
            or media.fate == "refused_at_post"
            or account_id not in (media.owner_id, *media.other_owners)
            or (media.posted_in and not self._switches.media_reuse_allowed)
        ):
            return None
        return media

    def seconds_left(self, media: XMedia) -> int:
        return max(0, math.floor(media.expires_at - self._now()))

    def _now(self) -> float:
        return self._context.clock.now().timestamp()
