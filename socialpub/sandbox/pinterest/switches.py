"""How this Pinterest behaves where the real one may behave in several ways, or can be asked to misbehave.

Set them on `world.pinterest` at any time; the defaults are the strict or the usual reading.
"""

from dataclasses import dataclass, field
from typing import Literal

from socialpub.sandbox.fetch import Fetch
from socialpub.sandbox.oauth import OAuthSwitches

FATES = ("succeeds", "fails", "never_ends")


@dataclass
class PinterestSwitches(OAuthSwitches):
    # OAuth
    code_seconds: int = 600
    access_seconds: int = 2592000
    refresh_seconds: int = 5184000
    omits_refresh_token: bool = False
    """A refresh answers without a refresh token; the old one goes on working."""
    old_refresh_survives: bool = False
    """A refresh token that was used goes on working."""
    scope_separator: str = " "

    # the app
    unapproved: bool = False
    """The app is not approved: every call is 401 code 3."""
    tier: Literal["standard", "trial"] = "standard"
    """A trial app may not make pins in production, and its limits count by the day for the whole app."""
    limits: dict[str, int] = field(default_factory=lambda: {"org_read": 1000, "org_write": 100})
    """Standard: calls of one user and app in a minute."""
    trial_limits: dict[str, int] = field(default_factory=lambda: {"all": 1000, "org_read": 1000, "org_write": 300})
    """Trial: calls of one app in a day."""

    # boards and pins
    pinner_data_denied: bool = False
    """Boards and pins of accounts that are no business cannot be read."""
    list_lag_seconds: float = 0
    """A pin shows in lists only when it is that old."""
    read_lag_seconds: float = 0
    """A pin can be read only when it is that old."""
    board_lag_seconds: float = 0
    """A board shows in the list only when it is that old."""
    trims_texts: bool = False
    """Texts come back trimmed and with plain line ends."""
    escapes_html: bool = False
    """Texts and links come back with `&amp;`, `&lt;`, `&gt;`."""
    composes_texts: bool = False
    """Texts come back in NFC."""
    cuts_texts_after: int = 0
    """Texts come back with so many characters at most; 0: whole."""
    null_texts: list[str] = field(default_factory=list)
    """Names of texts (`alt_text`) that come back as null although they were given."""
    dates_pins: bool = True
    """Pins say when they were made."""
    sections_in_board_list: bool = True
    """A board's list holds the pins of its sections."""
    smallest_side: int = 100
    """Pixels; a smaller image is 403 code 233."""
    decodes_images: bool = True
    """Decode images whole; else only their first bytes are looked at."""
    cover_needed: bool = True
    create_status: int = 201
    """201 or 200."""

    fetch: Fetch | None = None
    """Gives the bytes behind an image's URL, or raises; None: over HTTP."""

    # videos
    processing: Literal["succeeds", "fails", "never_ends"] = "succeeds"
    """What becomes of the videos uploaded from now on."""
    processing_ticks: int = 2
    """Calls for the status that are answered `processing`; 0: ready at once."""
    media_reuse_allowed: bool = True
    probes_video: bool = True
    """Look into videos: duration and shape. Else only at the container's first bytes."""
    policy_seconds: int = 3600
    """How long an upload form is good."""
    forms_good_once: bool = False
    """An upload form takes one upload; the next one is 403."""
    upload_host: str = ""
    """The host, perhaps with a port, that a registration names by https; empty: the one that was asked."""
