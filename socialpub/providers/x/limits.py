"""What X takes: figures, where they stand, and since when.

Sources: docs.x.com as of 2026-08-22, the media tables as of September 2026 where they changed (best practices,
media upload), the OpenAPI document 2.167. A figure that X does not state exactly is taken from its generous end when it
decides about a refusal of ours (X may know better), and from its small end when it decides what we send.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.providers.base import MediaFile
from socialpub.providers.oauth import RedirectRow, RedirectRules

# --- text: docs.x.com/fundamentals/counting-characters, 2026-08-22 ----------------------------------------------------

TEXT_LENGTH = 280
LONG_TEXT_LENGTH = 25_000
"""For subscribers, by API since August 2024. Whether plan Basic counts is not stated: rather X refuses than we."""
SUBSCRIPTIONS = frozenset({"Basic", "Premium", "PremiumPlus"})
VERIFIED_ORGANIZATIONS = frozenset({"business", "government"})
CASHTAGS = 1
"""For self-serve apps, since April 2026."""
NAMES_SHOWN = 5
"""Ours: mentioned accounts that a note names."""
ALT_LENGTH = 1000
"""OpenAPI 2.167, `alt_text.text`."""

# --- media: docs.x.com/x-api/media/quickstart/best-practices, September 2026 ------------------------------------------

PHOTOS = 4
IMAGE_BYTES = 5_000_000
"""Stated as 5 MB; the smaller reading."""
IMAGE_SIDE = 8192
"""From a third-party guide only, so images are fitted to it and nothing is refused for it."""
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
"""Above it X takes a video from some accounts only, and says so no earlier than at the post."""
VIDEO_SURE_SECONDS = 140
"""The limit of accounts without a subscription in the table of August 2026; in September it was 20 minutes."""
VIDEO_CODEC, AUDIO_CODEC = "h264", "aac"
"""X documents no others. It processes some others and refuses some of these at the post (integrators, 2026)."""

# --- redirect addresses -----------------------------------------------------------------------------------------------

_CALLBACKS = "docs.x.com/fundamentals/developer-apps (callback URLs)"
REDIRECT_ADDRESSES = RedirectRules(
    (
        RedirectRow("http with the host 127.0.0.1", ("http",), _CALLBACKS, "2026-08-22", hosts=("127.0.0.1",)),
        RedirectRow(
            "https with any host but localhost", ("https",), _CALLBACKS, "2026-08-22", other_hosts=("localhost",)
        ),
    )
)
"""X's console accepts localhost, and its consent page refuses it (integrators, 2026)."""

# --- uploads: OpenAPI 2.167 and X's own xurl, 2026-08 -----------------------------------------------------------------

SEGMENTS = 1000
CHUNK_BYTES = 1024 * 1024
CHUNK_MAX_BYTES = 4 * 1024 * 1024
CHUNK_MIN_BYTES = 64 * 1024
"""Ours: an edge that refuses even this does not want the file."""

PROCESSING_TIMEOUT_SECONDS = 60 * 60
"""X names none; integrators gave up after 7 to 30 minutes, and long videos took the longest of these."""
SETTLING_SECONDS = 2
"""Between `succeeded` and the post: X's own servers learn of it a moment later."""
EXPIRY_MARGIN_SECONDS = 120
"""Media this close to their end are uploaded again rather than posted."""

# --- prices in USD: docs.x.com/x-api/getting-started/pricing, August 2026 ---------------------------------------------

POST_PRICE = "0.015"
POST_WITH_URL_PRICE = "0.200"
ALT_TEXT_PRICE = "0.005"
"""A picture."""
LOOK_UP_PRICE = "0.005"
OWN_LOOK_UP_PRICE = "0.001"
"""A post that is read, when the account that reads its own posts owns the app."""


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


def in_chunks(media: MediaFile) -> bool:
    """Return whether X takes the file in chunks. It takes images in one call; a GIF with one frame is an image."""
    return media.kind == "video" or media.animated
