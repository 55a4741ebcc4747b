"""X's limits, with their sources and dates.

Sources: docs.x.com as of 2026-08-22, the media tables as of September 2026 (best practices, media upload), the OpenAPI
document 2.167. Where X is inexact, a limit for our refusals is the largest reading, and a limit for what we send is the
smallest reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.providers.base import MediaFile
from socialpub.providers.oauth import RedirectRow, RedirectRules

# --- text: docs.x.com/fundamentals/counting-characters, 2026-08-22 ----------------------------------------------------

TEXT_LENGTH = 280
LONG_TEXT_LENGTH = 25_000
"""For subscribers, by API since August 2024. X does not document whether plan Basic counts, so X decides."""
SUBSCRIPTIONS = frozenset({"Basic", "Premium", "PremiumPlus"})
VERIFIED_ORGANIZATIONS = frozenset({"business", "government"})
CASHTAGS = 1
"""For self-serve apps, since April 2026."""
NAMES_SHOWN = 5
"""Ours: the maximum number of mentioned accounts in a note."""
ALT_LENGTH = 1000
"""OpenAPI 2.167, `alt_text.text`."""

# --- media: docs.x.com/x-api/media/quickstart/best-practices, September 2026 ------------------------------------------

PHOTOS = 4
IMAGE_BYTES = 5_000_000
"""Stated as 5 MB. This is the smaller reading."""
JPEG_SURE_BYTES = 2_000_000
"""The second upload of refused images. Integrators report a PNG of 2.7 MB refused and one of 2.1 MB accepted."""
IMAGE_SIDE = 8192
"""From a third-party guide, so images are fitted to this limit and never refused for it."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/webp")

GIF_BYTES = 15_000_000
GIF_LONG_SIDE, GIF_SHORT_SIDE = 1280, 1080
GIF_FRAMES = 350
GIF_PIXELS = 300_000_000
"""Width × height × frames."""

VIDEO_MIN_SECONDS = 0.5
VIDEO_MAX_SECONDS = 20 * 60
VIDEO_MAX_SECONDS_SUBSCRIBED = 125 * 60
VIDEO_BYTES = 8 * 1024**3
VIDEO_BYTES_SUBSCRIBED = 16 * 1024**3
VIDEO_FRAME_RATE = 60
VIDEO_MIN_SIDE = 32
VIDEO_ASPECT = 3
"""From 1:3 to 3:1."""
VIDEO_SURE_LONG_SIDE, VIDEO_SURE_SHORT_SIDE = 1280, 1024
"""X accepts larger videos only from some accounts and refuses others only when the post is created."""
VIDEO_SURE_SECONDS = 140
"""The limit of accounts without a subscription in the table of August 2026. In September, it was 20 minutes."""
VIDEO_CODEC, AUDIO_CODEC = "h264", "aac"
"""X does not document other codecs. X processes some, and refuses some of these at the post (integrators, 2026)."""
PIXEL_FORMATS = ("yuv420p", "yuvj420p", "nv12", "nv21")
"""4:2:0 with 8 bits, in FFmpeg's names."""
AUDIO_CHANNELS = 2

# --- redirect URLs ----------------------------------------------------------------------------------------------------

_CALLBACKS = "docs.x.com/fundamentals/developer-apps (callback URLs)"
REDIRECT_ADDRESSES = RedirectRules(
    (
        RedirectRow("http with the host 127.0.0.1", ("http",), _CALLBACKS, "2026-08-22", hosts=("127.0.0.1",)),
        RedirectRow(
            "https with any host except localhost", ("https",), _CALLBACKS, "2026-08-22", other_hosts=("localhost",)
        ),
    )
)
"""X's console accepts localhost, but the consent page refuses localhost (integrators, 2026)."""

# --- uploads: OpenAPI 2.167 and X's own xurl, 2026-08 -----------------------------------------------------------------

SEGMENTS = 1000
CHUNK_BYTES = 1024 * 1024
CHUNK_MAX_BYTES = 4 * 1024 * 1024
CHUNK_MIN_BYTES = 64 * 1024
"""Ours: an edge that refuses this size refuses the file."""

PROCESSING_TIMEOUT_SECONDS = 60 * 60
"""Ours. Long videos took up to 30 minutes for integrators."""
SETTLING_SECONDS = 2
"""Between `succeeded` and the post: X's other servers have the media a moment later."""
EXPIRY_MARGIN_SECONDS = 120
"""Media that expire this soon are uploaded again."""

# --- prices in USD: docs.x.com/x-api/getting-started/pricing, August 2026 ---------------------------------------------

POST_PRICE = "0.015"
POST_WITH_URL_PRICE = "0.200"
ALT_TEXT_PRICE = "0.005"
"""For each image."""
LOOK_UP_PRICE = "0.005"
OWN_LOOK_UP_PRICE = "0.001"
"""For each post read, if the account owns the app and reads its own posts."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    text_length: int
    video_seconds: int
    video_bytes: int


DEFAULT = Entitlement(TEXT_LENGTH, VIDEO_MAX_SECONDS, VIDEO_BYTES)
SUBSCRIBED = Entitlement(LONG_TEXT_LENGTH, VIDEO_MAX_SECONDS_SUBSCRIBED, VIDEO_BYTES_SUBSCRIBED)


def entitlement(facts: Mapping[str, Any]) -> Entitlement:
    subscribed = facts.get("subscription_type") in SUBSCRIPTIONS
    return SUBSCRIBED if subscribed or facts.get("verified_type") in VERIFIED_ORGANIZATIONS else DEFAULT


def needs_chunks(media: MediaFile) -> bool:
    """Return whether X accepts the file in chunks. Images, including a GIF with one frame, need one call."""
    return media.kind == "video" or (media.animated and media.mime_type == "image/gif")
