"""How this TikTok behaves where the real one may behave in several ways, or can be asked to misbehave.

Set them on `world.tiktok` at any time; the defaults are the strict or the usual reading.
"""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from socialpub.sandbox.media import Fetch
from socialpub.sandbox.network import OAuthSwitches
from socialpub.sandbox.tokens import SandboxApp

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
"""What can become of a share once all its bytes are there; `inbox`: a direct post ends as a draft of its user."""


@dataclass
class TikTokSwitches(OAuthSwitches):
    # OAuth
    awkward_codes: bool = True
    """Codes hold `*` and `!`, as the real ones do."""
    code_seconds: int = 300
    access_seconds: int = 86400
    refresh_seconds: int = 365 * 86400
    refresh_restarts: bool = False
    """A refresh begins the refresh token's year anew; else it counts from the consent."""
    oauth_error_status: int = 400
    """400 or 200: the documentation does not say."""
    rotates: bool = True
    """A refresh answers with a new refresh token and ends the old one."""
    refresh_grace_seconds: float = 0
    """A refresh token that was used goes on working that long."""
    omits_refresh_token: bool = False
    """A refresh answers without a refresh token; the old one goes on working."""
    old_access_token_survives: bool = True

    # who may post
    audited: bool = True
    """Of apps that `add_app` does not know. An unaudited one posts for itself only, on private accounts."""
    unaudited_options: Literal["all", "self_only"] = "all"
    """What `creator_info` offers to an unaudited app."""
    posts_per_day: int = 15
    pending_shares_per_day: int = 5
    unaudited_user_cap: int = 5
    """Posting users of an unaudited app in 24 hours."""
    audited_user_cap: int = 0
    """The same for an audited one; 0: no cap."""
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "user_info": 600,
            "creator_info": 20,
            "video_init": 6,
            "inbox_init": 6,
            "content_init": 6,
            "status_fetch": 30,
            "cancel": 30,
            "video_query": 600,
            "video_list": 600,
        }
    )
    """Calls of one user and app in a sliding minute."""

    # uploads and pulls
    lenient_mib: bool = False
    """Chunk limits in binary megabytes."""
    upload_seconds: int = 3600
    upload_host: str = ""
    """The host that an init names for the chunks, reached by https; empty: the one that was asked."""
    count_lag_seconds: float = 0
    """How long TikTok takes to notice bytes that came in chunks: until then its status does not count them, and the
    last of them begins no processing."""
    last_chunk_status: int = 201
    """201 or 200."""
    progress_is_last_index: bool = False
    """The PUT's `Content-Range` ends with the last index instead of the count."""
    public_urls_only: bool = True
    """Pulls go to https and a domain only; False lets them go to any address, such as one of this machine."""
    all_urls_verified: bool = False
    """Nobody has to prove whose address it is."""
    verified_domains: list[str] = field(default_factory=list)
    """Domains proved by DNS; their subdomains count too."""
    verified_prefixes: list[str] = field(default_factory=list)
    """URL prefixes proved by a file."""

    fetch: Fetch | None = None
    """Gives the bytes behind a URL that is pulled, or raises; None: over HTTP."""

    # processing
    fate: str = COMPLETES
    """What becomes of the shares begun from now on: `completes`, `never_ends`, `inbox`, or a fail reason."""
    processing_ticks: int = 2
    """Calls for the status until a whole share has ended; 0: at once."""
    processing_seconds: float = 30
    """It ends after that time too, whether anybody looks or not."""
    probes_video: bool = True
    """Look into videos: duration, frame rate, size. Else only at the container's first bytes."""
    moderation_seconds: float = 60
    """How long after its end a public post has no id yet."""
    post_ids: Literal["one", "several", "none", "missing"] = "one"
    """Which ids the status gives: one, several, an empty list for ever, or no list at all."""
    post_ids_as_text: bool = False
    """Ids as strings instead of numbers."""


# MERGED from sandbox/tiktok/apps.py: TikTok's apps, and where the browser may go back to.

SCOPES = ("user.info.basic", "user.info.profile", "user.info.stats", "video.list", "video.publish", "video.upload")
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(slots=True)
class TikTokApp(SandboxApp):
    """A redirect address of a desktop app may have `*` for its port."""

    platform: Literal["web", "desktop", ""] = ""
    """Empty: desktop when the redirect leads to this machine, else web."""
    scopes: tuple[str, ...] = SCOPES
    audited: bool = True
    target_users: tuple[str, ...] = ()
    """Of an app in TikTok's own sandbox: only these usernames can log in. Empty: everybody."""


def platform_of(app: TikTokApp, uri: str) -> str:
    return app.platform or ("desktop" if urlsplit(uri).hostname in LOOPBACK else "web")


def may_return_to(app: TikTokApp, uri: str) -> bool:
    """By the rules of the platform, and exactly a registered address where there are any."""
    parts = urlsplit(uri)
    if not parts.hostname or parts.query or parts.fragment or "?" in uri or "#" in uri or len(uri) >= 512:
        return False
    if platform_of(app, uri) == "web":
        fits = parts.scheme == "https"
    else:
        fits = (
            parts.scheme in ("http", "https") and parts.hostname in LOOPBACK and parts.netloc.rpartition(":")[1] != ""
        )
    return fits and (not app.redirect_uris or any(_same(known, uri) for known in app.redirect_uris))


def _same(registered: str, uri: str) -> bool:
    if "*" not in registered:
        return registered == uri
    return re.fullmatch(re.escape(registered).replace(r":\*", r":[0-9]+"), uri) is not None


# MERGED from sandbox/tiktok/models.py: What TikTok keeps: accounts, shares on their way, posts.

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
