"""Pinterest's accounts, boards, videos and pins, and the switches for what the real Pinterest does in several ways."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from socialpub.sandbox.media import Fetch
from socialpub.sandbox.network import OAuthSwitches

# MERGED from sandbox/pinterest/switches.py: How this Pinterest behaves where the real one may behave in several wa

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


# MERGED from sandbox/pinterest/models.py: What Pinterest keeps: accounts, boards, registered videos, pins.

ACCOUNT_TYPES = ("BUSINESS", "PINNER")
PUBLIC, PROTECTED, SECRET = "PUBLIC", "PROTECTED", "SECRET"
MAX_BYTES = 2 * 1024**3
REGISTERED, PROCESSING, SUCCEEDED, FAILED = "registered", "processing", "succeeded", "failed"
PinKind = Literal["image", "carousel", "video"]


@dataclass(slots=True)
class PinterestAccount:
    id: str
    username: str
    business_name: str
    account_type: str = "BUSINESS"
    picture: str = ""
    """From which word the picture is drawn; empty: the username."""

    @property
    def is_business(self) -> bool:
        return self.account_type == "BUSINESS"


@dataclass(slots=True)
class PinterestBoard:
    id: str
    name: str
    owner_id: str
    privacy: str
    created_at: datetime
    description: str | None = None
    sandbox: bool = False
    """In Pinterest's own sandbox, which production does not know."""
    is_ads_only: bool = False
    collaborators: tuple[str, ...] = ()
    """Ids of other accounts that may pin here."""
    sections: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    modified_at: datetime | None = None

    def takes_pins_of(self, account: PinterestAccount) -> bool:
        return account.id == self.owner_id or account.id in self.collaborators


@dataclass(slots=True)
class PinterestMedia:
    id: str
    owner_id: str
    sandbox: bool
    form: dict[str, str] = field(repr=False)
    """The fields of its upload form."""
    form_expires_at: float
    """Unix seconds."""
    status: str = REGISTERED
    mime_type: str = ""
    size: int = 0
    sha256: str = ""
    uploads: int = 0
    fate: str = ""
    """What becomes of it; empty until it was uploaded."""
    looks: int = 0
    """Since it was uploaded."""
    pinned_in: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PinImage:
    """One image of a pin, or the cover of its video."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int
    height: int
    title: str | None = None
    description: str | None = None
    link: str | None = None


@dataclass(slots=True)
class Pin:
    id: str
    account_id: str
    username: str
    board_id: str
    section_id: str | None
    kind: PinKind
    title: str | None
    description: str | None
    alt_text: str | None
    link: str | None
    dominant_color: str | None
    pictures: tuple[PinImage, ...]
    """The image, the images of a carousel, or a video's cover (none for a key frame)."""
    film_id: str | None
    key_frame_seconds: int | None
    created_at: datetime
    """By the world's clock."""
    sandbox: bool = False
    client_id: str | None = None
    received_at: datetime | None = None
    """When the call's first byte arrived, by the machine's clock."""
    received_monotonic: float = 0.0
    deleted_at: datetime | None = None
    ai_disclosures: list[str] = field(default_factory=list)
    """What of it artificial intelligence made."""
    source: dict[str, Any] = field(default_factory=dict)
    """The `media_source` of the request, without its bytes."""
