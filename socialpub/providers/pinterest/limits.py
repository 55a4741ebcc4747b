"""Pinterest's limits, with their sources and dates.

Sources: Pinterest's OpenAPI description 5.23.0 (December 2025) for texts and counts, its help pages (product specs,
2025 and 2026) for media. Pinterest does not document how it counts text, so socialpub counts UTF-16 units.
"""

from socialpub.providers.base import ImageLimits
from socialpub.providers.oauth import RedirectRow, RedirectRules

# --- text: OpenAPI 5.23.0 ---------------------------------------------------------------------------------------------

TITLE_UNITS = 100
DESCRIPTION_UNITS = 800
ALT_UNITS = 500
LINK_CHARACTERS = 2048

BLOCKED_LINKS = "Pinterest's help page “Blocked links and websites”"
"""help.pinterest.com/en/articles/blocked-links-and-websites: no "certain redirects and URL shorteners"."""
SHORTENERS = tuple(
    """
    a.co adf.ly aka.ms amzn.eu amzn.to bc.vc bit.do bit.ly bitly.com bl.ink buff.ly clck.ru cutt.ly dlvr.it dub.sh fb.me
    geni.us gg.gg goo.gl goo.su hubs.ly ift.tt is.gd j.mp kutt.it lnk.to lnkd.in mcaf.ee n9.cl ouo.io ow.ly po.st qr.ae
    rb.gy rebrand.ly s.id short.io shorte.st shorturl.at smarturl.it snip.ly soo.gd spr.ly surl.li t.co t.ly tiny.cc
    tiny.one tinyurl.com tny.im tr.im trib.al u.to url.kr urlz.fr v.gd vk.cc wp.me x.gd zpr.io
    """.split()  # noqa: SIM905
)
"""Pinterest does not list the shorteners. These are usual ones. Their subdomains count too."""

# --- media ------------------------------------------------------------------------------------------------------------

CAROUSEL = (2, 5)
"""The number of images in a carousel, all of one size (OpenAPI 5.23.0; the size: three integrators)."""
IMAGE_TYPES = ("image/jpeg", "image/png")
IMAGE = ImageLimits(types=IMAGE_TYPES, max_bytes=10_000_000)
"""10 MB in older help pages, 20 MB in newer ones. The API's own figure is not published."""
CAROUSEL_IMAGE = ImageLimits(types=IMAGE_TYPES, max_bytes=2_000_000)
"""Ours: one JSON body contains five images."""

IMAGE_SURE_SIDE, IMAGE_GOOD_SIDE = 200, 600
"""Pinterest refuses small images without a documented limit. Vendors report 100 and 600."""

VIDEOS = 1
VIDEO_TYPES = ("video/mp4", "video/quicktime")
VIDEO_CODECS = ("h264", "hevc")
"""H.264 or H.265 (help page, product specs)."""
VIDEO_BYTES = 2 * 1024**3
"""Stated as 2 GB."""
VIDEO_SECONDS = (4, 15 * 60)
VIDEO_SHAPES = (0.5, 1.91)
"""Width divided by height."""
SLACK = 0.01
"""For inexact measured values."""

# --- redirect URLs ----------------------------------------------------------------------------------------------------

REDIRECT_ADDRESSES = RedirectRules(
    (
        RedirectRow(
            "http with the host localhost",
            ("http",),
            "github.com/pinterest/api-quickstart (registers http://localhost:8085/)",
            "2025-12",
            hosts=("localhost",),
        ),
        RedirectRow(
            "https", ("https",), "developers.pinterest.com/docs/getting-started/set-up-authentication", "2025-12"
        ),
    )
)
"""Pinterest does not document other URLs, such as http://127.0.0.1."""

# --- scopes: OpenAPI 5.23.0 -------------------------------------------------------------------------------------------

SCOPES_TO_PUBLISH = ("boards:read", "boards:write", "pins:read", "pins:write")
SCOPES_FOR_SECRET = tuple(f"{scope}_secret" for scope in SCOPES_TO_PUBLISH)
"""Also required for secret boards and their pins."""
