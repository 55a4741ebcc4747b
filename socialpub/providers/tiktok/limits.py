"""TikTok's limits, with their sources and dates.

Sources: developers.tiktok.com, Content Posting API (direct post, upload, media transfer guide), 2026-08 and 2026-09.
Figures that only integrators reported are marked. Texts are counted in UTF-16 code units.
"""

from socialpub.providers.base import ImageLimits
from socialpub.providers.oauth import RedirectRow, RedirectRules

# --- text -------------------------------------------------------------------------------------------------------------

VIDEO_CAPTION_UNITS = 2200
PHOTO_DESCRIPTION_UNITS = 4000
PHOTO_TITLE_UNITS = 90

# --- media ------------------------------------------------------------------------------------------------------------

VIDEOS = 1
VIDEO_TYPES = ("video/mp4", "video/quicktime", "video/webm")
VIDEO_BYTES = 4 * 1024**3
"""Stated as 4 GB."""
VIDEO_CODECS = ("h264", "hevc", "vp8", "vp9")
VIDEO_MAX_SECONDS = 600
"""The API's own maximum. A creator may have less, which TikTok reports just before a direct post."""
VIDEO_FRAME_RATES = (23.0, 60.0)
VIDEO_SIDES = (360, 4096)
FRAME_RATE_SLACK = 0.1
"""Measured rates vary: 60 may come out as 60.02."""

ONE_CHUNK_BYTES = 64_000_000
CHUNK_BYTES = 10_000_000
"""A chunk has 5 to 64 MB, the last up to 128. These figures are correct for decimal and for binary MB."""
UPLOAD_SECONDS = 3600
"""The lifetime of an upload URL."""
UPLOAD_MARGIN_SECONDS = 60
"""Ours: uploads do not begin in the last minute of their URL."""

PHOTOS = 35
PHOTO = ImageLimits(
    types=("image/jpeg", "image/webp"), max_bytes=20_000_000, max_width=1920, max_height=1920, max_short_side=1080
)
"""TikTok refuses PNG and a shorter side above 1080 (integrators, 2026). The limit of the long side is ours."""

# --- redirect URLs ----------------------------------------------------------------------------------------------------

REDIRECT_ADDRESSES = RedirectRules(
    (
        RedirectRow(
            "http or https with the host localhost or 127.0.0.1 and a port (a desktop app)",
            ("http", "https"),
            "developers.tiktok.com/doc/login-kit-desktop",
            "2026-09",
            hosts=("127.0.0.1", "localhost"),
            needs_port=True,
            app="desktop",
        ),
        RedirectRow("https (a web app)", ("https",), "developers.tiktok.com/doc/login-kit-web", "2026-09", app="web"),
    ),
    query_allowed=False,
    max_characters=511,
)
"""Both pages: absolute, static, fewer than 512 characters. TikTok refuses others, such as http://box.lan."""

# --- scopes -----------------------------------------------------------------------------------------------------------

SCOPE_LIST = "video.list"
SCOPE_PROFILE = "user.info.profile"
SCOPE_DIRECT = "video.publish"
SCOPE_DRAFT = "video.upload"
