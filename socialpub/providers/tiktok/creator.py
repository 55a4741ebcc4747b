"""Asking TikTok what the creator may do right now, as it wants before every direct post.

The owner's choice is compared with the answer and never replaced: a level that vanished fails the post.
"""

from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome, Refused
from socialpub.providers.responses import positive_int_at, text_at
from socialpub.providers.tiktok.client import call
from socialpub.providers.tiktok.options import INTERACTIONS, OFF_AT_FIRST


def creator_info(job: Job, section: TikTokSection) -> Outcome:
    found = call(job, section, "post/publish/creator_info/query/", {})
    levels = [level for level in found.get("privacy_level_options") or () if isinstance(level, str)]
    chosen = job.options.get("privacyLevel")
    # Without a list there is nothing to compare with; the call that begins the post tells then.
    if levels and chosen not in levels:
        message = (
            f"privacyLevel is {chosen}, but TikTok offers this account {', '.join(levels)} at the moment: choose one "
            "of them and create the post again."
        )
        return Refused(message, "privacy_level_option_mismatch")
    longest = positive_int_at(found, "max_video_post_duration_sec")
    for media in job.content.media:
        seconds = media.facts.get("duration_seconds")
        if media.kind == "video" and longest is not None and seconds is not None and seconds > longest:
            message = (
                f"TikTok allows this creator videos of {longest} seconds and this one lasts {seconds:.1f}: shorten it "
                "and create the post again."
            )
            return Refused(message, "duration_check_failed")
    creator: dict[str, Any] = {
        "username": text_at(found, "creator_username"),
        "levels": levels,
        "off": [name for name in INTERACTIONS if found.get(f"{name}_disabled") is True],
    }
    return Done({**job.memo, "creator": creator})


def disabled(job: Job, name: str) -> bool:
    """Whether `comment`, `duet` or `stitch` stays off: unless it was switched on, and where the creator's own settings
    say so. TikTok's guidelines want all of them off at first."""
    return bool(job.options.get(INTERACTIONS[name], OFF_AT_FIRST)) or name in job.memo.get("creator", {}).get("off", ())
