"""TikTok's accounts, shares and posts."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

PUBLIC, FOLLOWERS, FRIENDS, ONLY_ME = (
    "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY",
)  # fmt: skip
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

    @property
    def id(self) -> str:
        return self.open_id

    @property
    def privacy_options(self) -> list[str]:
        return [FOLLOWERS if self.private else PUBLIC, FRIENDS, ONLY_ME]


@dataclass(frozen=True, slots=True)
class TikTokMedia:
    """One video or photo."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int = 0
    height: int = 0


@dataclass(slots=True)
class TikTokPost:
    id: str
    """In the API for public posts only."""
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
        return self.privacy == PUBLIC


@dataclass(slots=True)
class ChunkPut:
    """One PUT: its range as sent, and the status of the response."""

    content_range: str
    size: int
    status: int


@dataclass(slots=True)
class PublishTask:
    """A share. It advances with calls for its status or with time, and ends once. A lost response changes nothing."""

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
    """What happens to it: empty, a fail reason, `never_ends`, `inbox`."""
    size: int = 0
    chunk_size: int = 0
    chunk_count: int = 0
    urls: tuple[str, ...] = ()
    upload_token: str = field(default="", repr=False)
    upload_expires_at: float = 0
    status: str = UPLOADING
    fail_reason: str = ""
    received: int = 0
    arrivals: Annotated[list[tuple[datetime, int]], Field(exclude=True)] = field(default_factory=list)
    """When each number of bytes was there."""
    puts: list[ChunkPut] = field(default_factory=list)
    media: tuple[TikTokMedia, ...] = ()
    finding: str = ""
    """The fail reason that the bytes gave."""
    whole_at: datetime | None = None
    """When all bytes were there."""
    polls: int = 0
    """Calls for the status since then."""
    ended_at: datetime | None = None
    posts: list[str] = field(default_factory=list)
    fetching: Annotated[bool, Field(exclude=True)] = False
    digest: Annotated[Any, Field(exclude=True)] = field(default_factory=hashlib.sha256, repr=False)
    head: Annotated[bytes, Field(exclude=True)] = b""

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def wants_pull(self) -> bool:
        return self.is_open and self.source == PULL_FROM_URL and self.whole_at is None and not self.fetching

    def chunk_at(self, first: int) -> tuple[int, int]:
        """Return first and last index of the chunk that begins there, by the declared plan."""
        number = first // self.chunk_size
        return first, self.size - 1 if number >= self.chunk_count - 1 else first + self.chunk_size - 1
