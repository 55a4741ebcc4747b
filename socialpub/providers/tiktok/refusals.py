"""TikTok's reactions, row by row: its error codes when it is asked, and its reasons when a task failed.

Codes decide, never the HTTP status or the wording: refusals come with status 200 too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

DAY_SECONDS = 24 * 3600.0


class Then(StrEnum):
    REFUSE = "refuse"
    WAIT_A_DAY = "wait-a-day"
    """The account is full for its day: nothing of this kind is asked of TikTok before it is over."""
    HOLD_APP = "hold-app"
    RECONNECT = "reconnect"
    ANEW = "anew"
    """TikTok itself calls it worth one new task."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means to the owner, in a sentence that says what to do."""

    advice: str
    then: Then = Then.REFUSE
    rest_seconds: float = 0.0
    """How long the account is left alone, or how long a new task waits."""


BANNED = Rule(
    "TikTok bars this account from posting; the account was left alone for a day. See what TikTok's app says there.",
    rest_seconds=DAY_SECONDS,
)
TOO_MANY_POSTS = Rule(
    "The account has reached TikTok's posts through apps for 24 hours (about 15, all apps together).", Then.WAIT_A_DAY
)

CODES: Mapping[str, Rule] = {
    "spam_risk_too_many_posts": TOO_MANY_POSTS,
    "spam_risk_too_many_pending_share": Rule(
        "Five drafts of the last 24 hours wait in the TikTok inbox: finish them in the app.", Then.WAIT_A_DAY
    ),
    "reached_active_user_cap": Rule(
        "The TikTok app has reached its number of posting accounts for 24 hours (5 while it is not audited).",
        Then.HOLD_APP,
    ),
    "spam_risk_user_banned_from_posting": BANNED,
    "unaudited_client_can_only_post_to_private_accounts": Rule(
        "The TikTok app is not audited: set the account itself to private in TikTok's app and privacyLevel to "
        'SELF_ONLY, or use mode "draft".'
    ),
    "url_ownership_unverified": Rule(
        "TikTok fetches photos only from addresses verified for the app: verify the domain of base_url, or its prefix "
        "of media, under URL properties at developers.tiktok.com (in the app's production configuration)."
    ),
    "privacy_level_option_mismatch": Rule(
        "The account does not offer this privacyLevel any more: choose another one and post again."
    ),
    "app_version_check_failed": Rule("Photo drafts need TikTok's app in version 31.8 or newer: update it, then again."),
    "invalid_param": Rule("Check the text, the options and the media; otherwise it is a fault of socialpub."),
    "invalid_params": Rule("Check the text, the options and the media; otherwise it is a fault of socialpub."),
    "invalid_publish_id": Rule("TikTok does not know the post's publish_id, or no longer: look at the profile."),
    "token_not_authorized_for_specified_publish_id": Rule(
        "TikTok says that the post's publish_id belongs to another account: look at the profile."
    ),
}

UNKNOWN_TASK = frozenset({"invalid_publish_id", "token_not_authorized_for_specified_publish_id"})
SCOPE_CODES = frozenset({"scope_not_authorized", "scope_permission_missed"})

PULL_FAILED = Rule(
    "TikTok could not fetch the media: base_url must be reachable from the internet by https, without redirects.",
    Then.ANEW,
    300.0,
)

FAIL_REASONS: Mapping[str, Rule] = {
    "file_format_check_failed": Rule(
        "TikTok refused the file format. Videos: MP4, MOV or WebM with H.264, H.265, VP8 or VP9; photos: JPEG or WebP."
    ),
    "duration_check_failed": Rule(
        "TikTok refused the duration: at most what it allows this creator (3 to 10 minutes)."
    ),
    "frame_rate_check_failed": Rule("TikTok refused the frame rate: 23 to 60 frames a second."),
    "picture_size_check_failed": Rule(
        "TikTok refused the picture size. Videos: 360 to 4096 pixels each side; photos: the shorter side at most 1080, "
        "at most 20 MB. One such photo fails the whole post."
    ),
    "internal": Rule("TikTok had a fault of its own while it processed the post.", Then.ANEW, 600.0),
    "video_pull_failed": PULL_FAILED,
    "photo_pull_failed": PULL_FAILED,
    "publish_cancelled": Rule("The post was cancelled at TikTok. Create it again if it should still go out."),
    "auth_removed": Rule("The account's permission was taken back while TikTok processed the post.", Then.RECONNECT),
    "spam_risk_too_many_posts": TOO_MANY_POSTS,
    "spam_risk_user_banned_from_posting": BANNED,
    "spam_risk_text": Rule("TikTok takes the text for spam: change the caption and create the post again."),
    "spam_risk": Rule("TikTok takes the post for spam. Do not send it again as it is."),
}
