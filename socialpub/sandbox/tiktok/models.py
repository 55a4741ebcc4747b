"""TikTok's accounts, shares and posts, and the switches for behavior that varies on the real TikTok."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from socialpub.sandbox.media import Fetch

FAIL_REASONS = (
    "file_format_check_failed",
    "duration_check_failed",
    "frame_rate_check_failed",
    "picture_size_check_failed",
    "internal",
    "video_pull_failed",
    "photo_pull_failed",
    "publish_cancelled",
    "auth_removed",
    "spam_risk_too_many_posts",
    "spam_risk_user_banned_from_posting",
    "spam_risk_text",
    "spam_risk",
)
COMPLETES, NEVER_ENDS, INBOX = "completes", "never_ends", "inbox"
FATES = (COMPLETES, NEVER_ENDS, INBOX, *FAIL_REASONS)
"""What can happen to a share once all its bytes are there. `inbox`: a direct post ends as a draft of its user."""


@dataclass
class TikTokSwitches:
    """How this TikTok behaves where the real one may behave in several ways, or can be asked to misbehave.

    Set them on `world.tiktok` at any time. The defaults are the strict or the usual reading.
    """

    # OAuth
    code_seconds: int = 300
    access_seconds: int = 86400
    refresh_seconds: int = 365 * 86400
    refresh_restarts: bool = False
    """A refresh restarts the year of the refresh token. Otherwise it counts from the consent."""
    oauth_error_status: int = 400
    """400 or 200. The documentation does not specify the status."""
    rotates: bool = True
    """A refresh returns a new refresh token and ends the old one."""
    refresh_grace_seconds: float = 0
    """How long a used refresh token still works."""
    omits_refresh_token: bool = False
    """A refresh returns no refresh token, and the old one still works."""
    old_access_token_survives: bool = True

    # who may post
    audited: bool = True
    """An unaudited app posts for its user alone, on private accounts."""
    posts_per_day: int = 15
    pending_shares_per_day: int = 5
    audited_user_cap: int = 0
    """Posting users of an audited app in 24 hours. 0: no cap."""
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "user_info": 600,
            "creator_info": 20,
            "video_init": 6,
            "inbox_init": 6,
            "content_init": 6,
            "status_fetch": 30,
            "video_query": 600,
        }
    )
    """Calls of one user and app in a sliding minute."""

    # uploads and pulls
    upload_seconds: int = 3600
    upload_host: str = ""
    """The https host that an init names for the chunks. Empty: the sandbox's own."""
    count_lag_seconds: float = 0
    """How late TikTok notices a chunk. Until then the status does not count it, and the last one begins no
    processing."""
    last_chunk_status: int = 201
    """201 or 200."""
    progress_is_last_index: bool = False
    """The PUT's `Content-Range` ends with the last index instead of the count."""
    public_urls_only: bool = True
    """Pulls need https and a domain. False permits any address, such as one of this machine."""
    all_urls_verified: bool = False
    """Addresses need no verification."""
    verified_domains: list[str] = field(default_factory=list)
    """Domains verified by DNS, with their subdomains."""
    verified_prefixes: list[str] = field(default_factory=list)
    """URL prefixes verified by a file."""

    fetch: Fetch | None = None
    """Returns the bytes of a pulled URL, or raises. None: over HTTP."""

    # processing
    fate: str = COMPLETES
    """What happens to shares that begin from now on: one of `FATES`."""
    processing_ticks: int = 2
    """Calls for the status until a whole share has ended. 0: at once."""
    processing_seconds: float = 30
    """A fully received share also ends after this time, even if its status is never requested."""
    probes_video: bool = True
    """Examine videos: duration, frame rate, size. Otherwise only the first bytes."""
    moderation_seconds: float = 60
    """How long a public post has no id yet."""
    post_ids: Literal["one", "several", "none", "missing"] = "one"
    """The ids in the status: one, several, an empty list forever, or no list."""
    post_ids_as_text: bool = False
    """Ids as strings instead of numbers."""


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
        return self.privacy == "PUBLIC_TO_EVERYONE"


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
    posts: list[TikTokPost] = field(default_factory=list)
    fetching: bool = False
    digest: Any = field(default_factory=hashlib.sha256, repr=False)
    head: bytes = b""

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def wants_pull(self) -> bool:
        return self.is_open and self.source == PULL_FROM_URL and self.whole_at is None and not self.fetching

    def received_by(self, moment: datetime) -> int:
        return max((count for at, count in self.arrivals if at <= moment), default=0)

    def chunk_at(self, first: int) -> tuple[int, int]:
        """Return first and last index of the chunk that begins there, by the declared plan."""
        number = first // self.chunk_size
        return first, self.size - 1 if number >= self.chunk_count - 1 else first + self.chunk_size - 1
