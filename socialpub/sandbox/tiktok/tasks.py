"""Shares on their way: what was begun, which bytes have come, how it ended.

A share moves on when somebody looks at it or when time passes, and ends once. What a lost answer began goes on all
the same.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

VIDEO, PHOTO = "VIDEO", "PHOTO"
FILE_UPLOAD, PULL_FROM_URL = "FILE_UPLOAD", "PULL_FROM_URL"
UPLOADING, DOWNLOADING = "PROCESSING_UPLOAD", "PROCESSING_DOWNLOAD"
IN_INBOX, COMPLETE, FAILED = "SEND_TO_USER_INBOX", "PUBLISH_COMPLETE", "FAILED"
OPEN = (UPLOADING, DOWNLOADING)


@dataclass(frozen=True, slots=True)
class Media:
    """One film or picture. The hash is empty when the bytes came before a restart."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int = 0
    height: int = 0


@dataclass(slots=True)
class Post:
    """What readers see."""

    id: str
    """Told through the API for public posts only."""
    publish_id: str
    open_id: str
    username: str
    kind: str
    """`VIDEO` or `PHOTO`."""
    title: str
    description: str
    privacy: str
    media: tuple[Media, ...]
    created_at: datetime
    options: dict[str, Any] = field(default_factory=dict)
    """The other fields of `post_info`."""
    client_key: str | None = None

    @property
    def is_public(self) -> bool:
        return self.privacy == "PUBLIC_TO_EVERYONE"


@dataclass(slots=True)
class Put:
    """One PUT: its range as sent, and the answer's status."""

    content_range: str
    size: int
    status: int


@dataclass(slots=True)
class Task:
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
    puts: list[Put] = field(default_factory=list)
    media: tuple[Media, ...] = ()
    finding: str = ""
    """The fail reason that a look into the bytes gave."""
    whole_at: datetime | None = None
    """When all bytes were there."""
    looks: int = 0
    """Since then."""
    ended_at: datetime | None = None
    posts: list[Post] = field(default_factory=list)
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

    def chunk_at(self, first: int) -> tuple[int, int]:
        """First and last index of the chunk that begins there, by the declared plan."""
        number = first // self.chunk_size
        return first, self.size - 1 if number >= self.chunk_count - 1 else first + self.chunk_size - 1
