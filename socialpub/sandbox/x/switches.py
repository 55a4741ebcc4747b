"""How this X behaves where the real one may behave in several ways, or can be asked to misbehave.

Set them on `world.x` at any time; the defaults are the strict or the usual reading.
"""

from dataclasses import dataclass, field
from typing import Literal

from socialpub.sandbox.oauth import OAuthSwitches


@dataclass
class XSwitches(OAuthSwitches):
    dialect: Literal["new", "old"] = "new"
    """`new` (2.167: posts, api.x.com) or `old` (2.166: tweets, api.twitter.com) in answers."""
    one_dialect: bool = False
    """Queries in the names of the other dialect are 400. By default both are taken, each for itself: those who went on
    asking in the old names after the new document came out were answered, and some who asked in the new ones were not,
    so either may be refused on a given day."""

    # OAuth
    code_seconds: int = 30
    access_seconds: int = 7200
    refresh_seconds: int = 180 * 86400
    kill_family_on_reuse: bool = False
    """A refresh token used twice ends the newest pair too."""
    old_access_token_survives: bool = False
    """An access token goes on working after its pair was refreshed."""

    # media
    append_answers: int = 200
    """200 with `expires_at`, or 204 without a body."""
    media_seconds: int = 86400
    """An upload and its media id are usable that long."""
    processing: Literal["succeeds", "fails", "never_ends", "refused_at_post"] = "succeeds"
    """What becomes of the next finalized GIFs and videos: `succeeds`, `fails`, `never_ends`, `refused_at_post`."""
    processing_ticks: int = 2
    """Calls for the status until it has succeeded; 0: ready at once."""
    check_after_seconds: int = 1
    media_reuse_allowed: bool = True
    max_segment_bytes: int = 5 * 1024 * 1024

    # posts
    duplicate_window_seconds: int = 86400
    """The same text of the same account is refused that long; 0 never."""
    list_lag_seconds: float = 0
    """A post shows in lists only when it is that old."""
    missing_post_status: int = 404
    """404, or 200 with `errors` alone."""
    too_long_status: int = 400
    quotes_allowed: bool = False
    escapes_html: bool = False
    """Answer `&amp;`, `&lt;`, `&gt;` in texts."""
    strips_invisible: bool = False
    """Zero-width, direction and control characters are gone from what is shown of a text."""
    names_in_replies: bool = True
    """The name of the answered author stands in front of a reply's text."""
    leaves_out: list[str] = field(default_factory=list)
    """Members of posts that reading leaves out although they were asked for, as after a hydration that failed."""
    needs_text: bool = False
    """A body without `text` is 400, with media too, as behind X's gateway. In front of it an absent text is `""`."""
    blocked_hosts: list[str] = field(default_factory=list)

    # money and limits
    credits_depleted: int = 0
    """1 or 2: every call is answered 402, in that shape."""
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "POST /2/tweets": 100,
            "GET /2/tweets/:id": 900,
            "DELETE /2/tweets/:id": 50,
            "GET /2/users/me": 75,
            "GET /2/users/:id/tweets": 900,
            "POST /2/media/upload": 500,
            "GET /2/media/upload": 1000,
            "POST /2/media/upload/initialize": 1875,
            "POST /2/media/upload/:id/append": 1875,
            "POST /2/media/upload/:id/finalize": 1875,
            "POST /2/media/metadata": 500,
        }
    )
    """Calls of one user in 15 minutes."""
    daily_limits: dict[str, int] = field(default_factory=dict)
    """Calls of one user in 24 hours; a label in here also gets the 24-hour headers."""
    app_daily_limits: dict[str, int] = field(default_factory=dict)
    """The same for all users of one app."""
