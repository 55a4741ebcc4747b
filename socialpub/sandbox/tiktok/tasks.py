"""What TikTok keeps: users, shares, posts and their media."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

PUBLIC, FOLLOWERS, FRIENDS, ONLY_ME = (
    "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY",
)  # fmt: skip
VIDEO, PHOTO = "VIDEO", "PHOTO"
UPLOADING, DOWNLOADING = "PROCESSING_UPLOAD", "PROCESSING_DOWNLOAD"
IN_INBOX, COMPLETE, FAILED = "SEND_TO_USER_INBOX", "PUBLISH_COMPLETE", "FAILED"


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

    @property
    def path(self) -> str:
        """Of the post's page."""
        return f"@{self.username}/{self.kind.lower()}/{self.id}"


@dataclass(slots=True)
class PublishTask:
    """A share: a video in chunks, or photos from their URLs. It advances with calls for its status or with time, and
    ends once. A lost response changes nothing."""

    publish_id: str
    kind: str
    direct: bool
    open_id: str
    username: str
    client_key: str | None
    post_info: dict[str, Any]
    created_at: datetime
    status: str
    size: int = 0
    chunk_size: int = 0
    chunk_count: int = 0
    urls: tuple[str, ...] = ()
    upload_token: str = field(default="", repr=False)
    upload_expires_at: float = 0
    fail_reason: str = ""
    received: int = 0
    chunks: int = 0
    """How many were accepted."""
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
    mime_type: str = ""
    """By the first bytes of the video; empty: unknown."""

    @property
    def is_open(self) -> bool:
        return self.status in (UPLOADING, DOWNLOADING)

    @property
    def wants_pull(self) -> bool:
        return self.is_open and self.kind == PHOTO and self.whole_at is None and not self.fetching
