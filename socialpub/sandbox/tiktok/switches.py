"""How this TikTok behaves where the real one may behave in several ways, or can be asked to misbehave.

Set them on `world.tiktok` at any time; the defaults are the strict or the usual reading.
"""

from dataclasses import dataclass, field
from typing import Literal

from socialpub.sandbox.fetch import Fetch
from socialpub.sandbox.oauth import OAuthSwitches

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
