"""What TikTok keeps: accounts, shares on their way, posts.

A share moves on when somebody looks at it or when time passes, and ends once. What a lost answer began goes on all
the same.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PUBLIC, FOLLOWERS, FRIENDS, ONLY_ME = (
    "PUBLIC_TO_EVERYONE",
    "FOLLOWER_OF_CREATOR",
    "MUTUAL_FOLLOW_FRIENDS",
    "SELF_ONLY",
)
VIDEO, PHOTO = "VIDEO", "PHOTO"
FILE_UPLOAD, PULL_FROM_URL = "FILE_UPLOAD", "PULL_FROM_URL"
UPLOADING, DOWNLOADING = "PROCESSING_UPLOAD", "PROCESSING_DOWNLOAD"
IN_INBOX, COMPLETE, FAILED = "SEND_TO_USER_INBOX", "PUBLISH_COMPLETE", "FAILED"
OPEN = (UPLOADING, DOWNLOADING)


@dataclass(slots=True)
class TikTokAccount:
    open_id: str
    union_id: str
    username: str
    display_name: str
    private: bool = False
    comment_disabled: bool = False
    duet_disabled: bool = False
    stitch_disabled: bool = False
    max_duration: int = 600
    """Seconds."""
    banned: bool = False
    app_version: str = "36.1.0"
    """Of the TikTok app on the user's phone."""
    picture: str = ""
    """From which word the picture is drawn; empty: the username."""

    @property
    def id(self) -> str:
        return self.open_id

    @property
    def privacy_options(self) -> list[str]:
        return [FOLLOWERS if self.private else PUBLIC, FRIENDS, ONLY_ME]


@dataclass(frozen=True, slots=True)
class TikTokMedia:
    """One video or photo. The hash is empty when the bytes came before a restart."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int = 0
    height: int = 0


@dataclass(slots=True)
class TikTokPost:
    """What readers see."""

    id: str
    """Given by the API for public posts only."""
    publish_id: str
    open_id: str
    username: str
    kind: str
    """`VIDEO` or `PHOTO`."""
    title: str
    description: str
    privacy: str
    media: tuple[TikTokMedia, ...]
    created_at: datetime
    options: dict[str, Any] = field(default_factory=dict)
    """The other fields of `post_info`."""
    client_key: str | None = None

    @property
    def is_public(self) -> bool:
        return self.privacy == "PUBLIC_TO_EVERYONE"


@dataclass(slots=True)
class ChunkPut:
    """One PUT: its range as sent, and the answer's status."""

    content_range: str
    size: int
    status: int


@dataclass(slots=True)
class PublishTask:
    publish_id: str
    kind: str
    direct: bool
    source: str
    """`FILE_UPLOAD` or `PULL_FROM_URL`."""
    open_id: str
    username: str
    client_key: str | None
    post_info: dict[str, Any]
    created_at: datetime
    fate: str
    size: int = 0
    chunk_size: int = 0
    chunk_count: int = 0
    urls: tuple[str, ...] = ()
    upload_token: str = field(default="", repr=False)
    upload_expires_at: float = 0
    status: str = UPLOADING
    fail_reason: str = ""
    received: int = 0
    arrivals: list[tuple[datetime, int]] = field(default_factory=list)
    """When so many bytes were there."""
    puts: list[ChunkPut] = field(default_factory=list)
    media: tuple[TikTokMedia, ...] = ()
    finding: str = ""
    """The fail reason that the bytes gave."""
    whole_at: datetime | None = None
    """When all bytes were there."""
    looks: int = 0
    """Since then."""
    ended_at: datetime | None = None
    posts: list[TikTokPost] = field(default_factory=list)
    fetching: bool = False
    received_at: datetime | None = None
    """When the init's first byte arrived, by the machine's clock."""
    received_monotonic: float = 0.0
    digest: Any = field(default_factory=hashlib.sha256, repr=False)
    head: bytes = b""

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def wants_pull(self) -> bool:
        return self.is_open and self.source == PULL_FROM_URL and self.whole_at is None and not self.fetching

    def received_by(self, moment: datetime) -> int:
        """The bytes that had come by then."""
        return max((count for at, count in self.arrivals if at <= moment), default=0)

    def chunk_at(self, first: int) -> tuple[int, int]:
        """First and last index of the chunk that begins there, by the declared chunks."""
        number = first // self.chunk_size
        return first, self.size - 1 if number >= self.chunk_count - 1 else first + self.chunk_size - 1
