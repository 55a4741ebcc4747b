"""Pinterest's accounts, boards, videos and pins."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

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
    """What happens to it. Empty until the upload."""
    polls: int = 0
    """Calls for the status since the upload."""
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
    video_id: str | None
    key_frame_seconds: int | None
    created_at: datetime
    """By the world's clock."""
    client_id: str | None = None
    ai_disclosures: list[str] = field(default_factory=list)
