"""The choices of a creator: TikTok says what the account may do now, and its guidelines say what the owner must choose.

TikTok wants to be asked before every direct post, and when a form for one opens. The owner's choice is compared with
the answer and never replaced: a level that vanished fails the post.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from socialpub.core import commands
from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import AppLimits, Content, Done, Job, Outcome, Refused
from socialpub.providers.http import Http
from socialpub.providers.options import Options
from socialpub.providers.responses import positive_int_at, text_at
from socialpub.providers.tiktok.client import ask, call
from socialpub.providers.tiktok.options import INTERACTIONS, OFF_AT_FIRST, PRIVATE, is_draft

PATH = "post/publish/creator_info/query/"

BARS: Mapping[str, str] = {
    "spam_risk_too_many_posts": "This account has reached TikTok's posts through apps for 24 hours (about 15, all apps "
    "together). Nothing can be posted to it for now: come back tomorrow.",
    "spam_risk_user_banned_from_posting": "TikTok bars this account from posting. See what TikTok's app says there.",
    "reached_active_user_cap": "The TikTok app has reached its number of posting accounts for 24 hours (5 while it is "
    "not audited). Nothing can be posted to this account for now: come back tomorrow.",
}
"""What keeps an account from posting directly, by TikTok's code."""


@dataclass(frozen=True, slots=True)
class CreatorInfo:
    nickname: str | None
    username: str | None
    avatar_url: str | None
    """Valid for two hours."""
    privacy_levels: tuple[str, ...]
    """What `privacyLevel` may be; empty when TikTok did not say."""
    off: tuple[str, ...]
    """Those of `comment`, `duet` and `stitch` that the account's own settings switch off. Photos know comments only."""
    longest_video_seconds: int | None


def creator_info(job: Job, section: TikTokSection) -> Outcome:
    info = _read(call(job, section, PATH, {}))
    chosen = job.options.get("privacyLevel")
    # Without a list there is nothing to compare. The call that begins the post decides then.
    if info.privacy_levels and chosen not in info.privacy_levels:
        message = (
            f"privacyLevel is {chosen}, but TikTok offers this account {', '.join(info.privacy_levels)} at the moment: "
            "choose one of them and create the post again."
        )
        return Refused(message, "privacy_level_option_mismatch", content=True)
    longest = info.longest_video_seconds
    for media in job.content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest is not None and seconds is not None and seconds > longest:
            message = (
                f"TikTok allows this creator videos of {longest} seconds and this one lasts {seconds:.1f}: shorten it "
                "and create the post again."
            )
            return Refused(message, "duration_check_failed", content=True)
    creator = {"username": info.username, "levels": list(info.privacy_levels), "off": list(info.off)}
    return Done({**job.memo, "creator": creator})


def ask_creator(http: Http, section: TikTokSection, token: str, scopes: Set[str]) -> CreatorInfo:
    """Return the answer for an owner who is about to post. Raises `ProviderError`: a code in `BARS` stops the form."""
    return _read(ask(http, section, PATH, token, scopes))


def _read(found: dict[str, Any]) -> CreatorInfo:
    levels = found.get("privacy_level_options")
    return CreatorInfo(
        nickname=text_at(found, "creator_nickname"),
        username=text_at(found, "creator_username"),
        avatar_url=text_at(found, "creator_avatar_url"),
        privacy_levels=tuple(one for one in levels if isinstance(one, str)) if isinstance(levels, list) else (),
        off=tuple(name for name in INTERACTIONS if found.get(f"{name}_disabled") is True),
        longest_video_seconds=positive_int_at(found, "max_video_post_duration_sec"),
    )


def disabled(job: Job, name: str) -> bool:
    """Return whether `comment`, `duet` or `stitch` stays off: not switched on, or off in the creator's own settings."""
    return bool(job.options.get(INTERACTIONS[name], OFF_AT_FIRST)) or name in job.memo.get("creator", {}).get("off", ())


# --- what TikTok wants of a form for a post ---------------------------------------------------------------------------
#
# https://developers.tiktok.com/doc/content-sharing-guidelines ("Required UX Implementation in Your App"), 2026-10.

BRANDS = {"brandOrganicToggle": "Your brand", "brandContentToggle": "Branded content"}
"""What commercial content may be, by option."""
SWITCH = "disclosed"

PRIVACY_MISSING = "Choose who can see the post. TikTok wants the choice to be yours: nothing is chosen for you."
KIND_MISSING = "You need to indicate if your content promotes yourself, a third party, or both."
SWITCH_MISSING = "Turn this on, or untick what is below it."
NOT_PRIVATE = "Branded content visibility cannot be set to private."

UNAUDITED = (
    "TikTok has not audited this app (audited = false in [providers.tiktok]).",
    f"A direct post must be “Only me” ({PRIVATE}), and the account itself must be private while it is posted.",
    "At most five accounts may post directly in 24 hours.",
)
"""Until the audit. Content Posting API (get started), 2026-09."""
OWN_APP = (
    "TikTok's guidelines refuse apps that upload to accounts that you or your team manage, so an app of your own stays "
    "unaudited."
)
"""Content Sharing Guidelines, copy of 2026-09-11."""

OF_VIDEOS = (INTERACTIONS["duet"], INTERACTIONS["stitch"])
DIRECT_ONLY = ("privacyLevel", *INTERACTIONS.values(), *BRANDS)


def is_commercial(chosen: Mapping[str, Any]) -> bool:
    return any(chosen.get(key) is True for key in BRANDS)


def brand_label(chosen: Mapping[str, Any]) -> str | None:
    """Return TikTok's label for a post with these choices."""
    if chosen.get("brandContentToggle") is True:
        return "Paid partnership"
    return "Promotional content" if chosen.get("brandOrganicToggle") is True else None


def counting(chosen: Mapping[str, Any], *, only_photos: bool) -> Options:
    """Return the choices that TikTok uses: TikTok's app asks for those of a draft, and photos know comments only."""
    idle = {*(DIRECT_ONLY if is_draft(chosen) else ()), *(OF_VIDEOS if only_photos else ())}
    return {key: value for key, value in chosen.items() if key not in idle}


def choices_missing(chosen: Mapping[str, Any], disclosed: bool) -> list[FieldError]:
    """Return the choices that the owner still has to make before a direct post."""
    if is_draft(chosen):
        return []
    found = []
    if chosen.get("privacyLevel") is None:
        found.append(_at("privacyLevel", PRIVACY_MISSING))
    if disclosed and not is_commercial(chosen):
        found.append(_at(SWITCH, KIND_MISSING))
    if not disclosed and is_commercial(chosen):
        found.append(_at(SWITCH, SWITCH_MISSING))
    if chosen.get("brandContentToggle") is True and chosen.get("privacyLevel") == PRIVATE:
        found.append(_at("privacyLevel", NOT_PRIVATE))
    return found


def not_offered(chosen: Mapping[str, Any], privacy_levels: Sequence[str], account: str) -> list[FieldError]:
    level = chosen.get("privacyLevel")
    if is_draft(chosen) or level is None or level in privacy_levels:
        return []
    return [_at("privacyLevel", f"TikTok does not offer this choice to {account} at the moment: choose another one.")]


def too_long(content: Content, longest_seconds: int | None, account: str) -> list[FieldError]:
    found = []
    for media in content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest_seconds is not None and seconds is not None and seconds > longest_seconds:
            message = (
                f"TikTok allows {account} videos of at most {longest_seconds} seconds, and this one lasts "
                f"{seconds:.1f}: shorten it, or leave this profile out."
            )
            found.append(FieldError(("media", media.position), message))
    return found


def _at(key: str, message: str) -> FieldError:
    return FieldError(("providerOptions", "tiktok", key), message)


def unaudited() -> AppLimits:
    """Return TikTok's restrictions of an app that it has not audited."""
    remedy = (
        'Send drafts (mode "draft") and finish them in the TikTok app. If TikTok has audited your app, set '
        f"audited = true in [providers.tiktok]. {commands.here().restart()}."
    )
    return AppLimits(UNAUDITED, OWN_APP, remedy)
