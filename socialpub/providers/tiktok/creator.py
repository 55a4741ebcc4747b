"""Asking TikTok what the creator may do right now, as it wants before every direct post and when a form for one opens.

The owner's choice is compared with the answer and never replaced: a level that vanished fails the post.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Done, Job, Outcome, Refused
from socialpub.providers.http import Http
from socialpub.providers.responses import positive_int_at, text_at
from socialpub.providers.tiktok.client import ask, call
from socialpub.providers.tiktok.options import INTERACTIONS, OFF_AT_FIRST

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
    """What TikTok says of an account at the moment."""

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
    """The answer for an owner who is about to post. Raises `errors.py`; a code among `BARS` says that nothing can be
    posted now."""
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
    """Whether `comment`, `duet` or `stitch` stays off: unless it was switched on, and where the creator's own settings
    say so. TikTok's guidelines want all of them off at first."""
    return bool(job.options.get(INTERACTIONS[name], OFF_AT_FIRST)) or name in job.memo.get("creator", {}).get("off", ())
