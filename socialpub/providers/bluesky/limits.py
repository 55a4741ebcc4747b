"""Bluesky's limits, with their sources and dates.

Sources: the lexicons of `bluesky-social/atproto` (2026-08), the server `@atproto/pds` 0.5.35 (November 2026) and
Bluesky's own app (2026).
"""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.base import ImageLimits

# --- text: lexicon app.bsky.feed.post ---------------------------------------------------------------------------------

TEXT_GRAPHEMES = 300
TEXT_BYTES = 3000
ALT_GRAPHEMES = 2000
"""Of the app. The lexicon has no limit."""

# --- media ------------------------------------------------------------------------------------------------------------

IMAGES = 4
IMAGE_BYTES = 2_000_000
"""Since April 2026."""
FORMER_IMAGE_BYTES = 1_000_000
"""Servers of that time refuse the record of a larger image."""
IMAGE_SIDE = 4000
"""Of the app. Servers have no limit."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/webp")

VIDEO_TYPES = ("video/mp4",)
VIDEO_BYTES = 300_000_000
"""100,000,000 until 2026."""
VIDEO_SECONDS = 10 * 60
"""Of the app."""
VIDEO_CODECS, AUDIO_CODECS = ("h264",), ("aac", "mp3")
"""Bluesky encodes each video again and does not document the codecs that it reads."""

# --- link cards: lexicon app.bsky.embed.external ----------------------------------------------------------------------

THUMB = ImageLimits(types=("image/jpeg", "image/png"), max_bytes=1_000_000, max_width=2000, max_height=2000)
"""The limit of the sides is ours."""
CARD_TITLE_GRAPHEMES = 300
CARD_DESCRIPTION_GRAPHEMES = 1000
"""Ours: the lexicon has no limits."""


def video_bytes(facts: Mapping[str, Any]) -> int:
    return min(VIDEO_BYTES, blob_limit(facts) or VIDEO_BYTES)


def blob_limit(facts: Mapping[str, Any]) -> int | None:
    """Return the largest file that the account's server accepts. None: the server does not report its limit."""
    limit = facts.get("blob_limit")
    return limit if isinstance(limit, int) and limit > 0 else None
