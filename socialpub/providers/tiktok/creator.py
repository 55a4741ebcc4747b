"""A creator's choices: what TikTok allows the account now, and what its guidelines require the owner to choose.

TikTok requires this query before every direct post, and when a form for a direct post opens. The owner's choice is
never replaced: a post with a privacy level that TikTok no longer offers fails.
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
from socialpub.providers.responses import label_at, positive_int_at, text_at
from socialpub.providers.tiktok.client import ask, call
from socialpub.providers.tiktok.options import INTERACTIONS, OFF_BY_DEFAULT, PRIVATE, is_draft

PATH = "post/publish/creator_info/query/"

POSTING_BLOCKS: Mapping[str, str] = {
    "spam_risk_too_many_posts": "This account has reached TikTok's limit of posts through apps in 24 hours (about 15 "
    "for all apps). TikTok does not currently accept direct posts. Try again tomorrow.",
    "spam_risk_user_banned_from_posting": "TikTok has banned this account from posting. Check TikTok's app.",
    "reached_active_user_cap": "The TikTok app has reached its limit of posting accounts in 24 hours (5 for an "
    "unaudited app). TikTok does not currently accept direct posts of this account. Try again tomorrow.",
}
"""Why TikTok does not accept direct posts, by TikTok's code."""


@dataclass(frozen=True, slots=True)
class CreatorInfo:
    nickname: str | None
    username: str | None
    avatar_url: str | None
    """Valid for two hours."""
    privacy_levels: tuple[str, ...]
    """The allowed values of `privacyLevel`. Empty: TikTok did not list them."""
    off: tuple[str, ...]
    """Those of `comment`, `duet` and `stitch` that the account's own settings switch off. Photos have only comments."""
    longest_video_seconds: int | None


def creator_info(job: Job, section: TikTokSection) -> Outcome:
    info = _read(call(job, section, PATH, {}))
    chosen = job.options.get("privacyLevel")
    # Without a list, the call that begins the post decides.
    if info.privacy_levels and chosen not in info.privacy_levels:
        message = (
            f"privacyLevel is {chosen}, but TikTok now offers this account only {', '.join(info.privacy_levels)}. "
            "Choose one of these levels and create the post again."
        )
        return Refused(message, "privacy_level_option_mismatch", content=True)
    longest = info.longest_video_seconds
    for media in job.content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest is not None and seconds is not None and seconds > longest:
            message = (
                f"TikTok allows this creator videos of at most {longest} seconds. This video lasts {seconds:.1f} "
                "seconds. Shorten the video and create the post again."
            )
            return Refused(message, "duration_check_failed", content=True)
    creator = {"username": info.username, "levels": list(info.privacy_levels), "off": list(info.off)}
    return Done({**job.memo, "creator": creator})


def ask_creator(http: Http, section: TikTokSection, token: str, scopes: Set[str]) -> CreatorInfo:
    """Return TikTok's answer for a form. Raises `ProviderError`, whose code in `POSTING_BLOCKS` stops the form."""
    return _read(ask(http, section, PATH, token, scopes))


def _read(found: dict[str, Any]) -> CreatorInfo:
    levels = found.get("privacy_level_options")
    return CreatorInfo(
        nickname=label_at(found, "creator_nickname"),
        username=label_at(found, "creator_username"),
        avatar_url=text_at(found, "creator_avatar_url"),
        privacy_levels=tuple(level for level in levels if isinstance(level, str)) if isinstance(levels, list) else (),
        off=tuple(name for name in INTERACTIONS if found.get(f"{name}_disabled") is True),
        longest_video_seconds=positive_int_at(found, "max_video_post_duration_sec"),
    )


def disabled(job: Job, name: str) -> bool:
    """Return whether `comment`, `duet` or `stitch` stays off, by the options or by the creator's own settings."""
    off = job.memo.get("creator", {}).get("off", ())
    return bool(job.options.get(INTERACTIONS[name], OFF_BY_DEFAULT)) or name in off


# --- what TikTok requires of a form for a post ------------------------------------------------------------------------
#
# https://developers.tiktok.com/doc/content-sharing-guidelines ("Required UX Implementation in Your App"), 2026-10.

BRANDS = {"brandOrganicToggle": "Your brand", "brandContentToggle": "Branded content"}
"""The kinds of commercial content, by option."""
SWITCH = "disclosed"

PRIVACY_MISSING = "Choose who can see the post. TikTok does not allow a default for this choice."
KIND_MISSING = "You need to indicate if your content promotes yourself, a third party, or both."
SWITCH_MISSING = "Turn this on, or clear the options below it."
NOT_PRIVATE = "Branded content visibility cannot be set to private."

UNAUDITED = (
    "TikTok has not audited this app (audited = false in [providers.tiktok]).",
    f"A direct post must be “Only me” ({PRIVATE}), and the account itself must be private when you post.",
    "At most five accounts may post directly in 24 hours.",
)
"""Before the audit. Content Posting API (get started), 2026-09."""
OWN_APP = (
    "TikTok's guidelines refuse apps that upload to accounts that you or your team manage. An app of your own "
    "therefore stays unaudited."
)
"""Content Sharing Guidelines, 2026-09-11."""

OF_VIDEOS = (INTERACTIONS["duet"], INTERACTIONS["stitch"])
DIRECT_ONLY = ("privacyLevel", *INTERACTIONS.values(), *BRANDS)


def is_commercial(chosen: Mapping[str, Any]) -> bool:
    return any(chosen.get(key) is True for key in BRANDS)


def brand_label(chosen: Mapping[str, Any]) -> str | None:
    if chosen.get("brandContentToggle") is True:
        return "Paid partnership"
    return "Promotional content" if chosen.get("brandOrganicToggle") is True else None


def select_used_choices(chosen: Mapping[str, Any], *, only_photos: bool) -> Options:
    """Return the choices that TikTok uses. TikTok's app asks for those of a draft, and photos have only comments."""
    idle = {*(DIRECT_ONLY if is_draft(chosen) else ()), *(OF_VIDEOS if only_photos else ())}
    return {key: value for key, value in chosen.items() if key not in idle}


def list_missing_choices(chosen: Mapping[str, Any], disclosed: bool) -> list[FieldError]:
    if is_draft(chosen):
        return []
    problems = []
    if chosen.get("privacyLevel") is None:
        problems.append(_at("privacyLevel", PRIVACY_MISSING))
    if disclosed and not is_commercial(chosen):
        problems.append(_at(SWITCH, KIND_MISSING))
    if not disclosed and is_commercial(chosen):
        problems.append(_at(SWITCH, SWITCH_MISSING))
    if chosen.get("brandContentToggle") is True and chosen.get("privacyLevel") == PRIVATE:
        problems.append(_at("privacyLevel", NOT_PRIVATE))
    return problems


def list_levels_not_offered(chosen: Mapping[str, Any], privacy_levels: Sequence[str], account: str) -> list[FieldError]:
    level = chosen.get("privacyLevel")
    if is_draft(chosen) or level is None or level in privacy_levels:
        return []
    return [_at("privacyLevel", f"TikTok does not currently offer this choice to {account}. Choose another level.")]


def list_too_long_videos(content: Content, longest_seconds: int | None, account: str) -> list[FieldError]:
    problems = []
    for media in content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest_seconds is not None and seconds is not None and seconds > longest_seconds:
            message = (
                f"TikTok allows {account} videos of at most {longest_seconds} seconds. This video lasts {seconds:.1f} "
                "seconds. Shorten the video, or remove this profile."
            )
            problems.append(FieldError(("media", media.position), message))
    return problems


def _at(key: str, message: str) -> FieldError:
    return FieldError(("providerOptions", "tiktok", key), message)


def unaudited() -> AppLimits:
    remedy = (
        'Send drafts (mode "draft") and finish them in the TikTok app. If TikTok has audited your app, set '
        f"audited = true in [providers.tiktok]. {commands.restart()}."
    )
    return AppLimits(UNAUDITED, OWN_APP, remedy)
