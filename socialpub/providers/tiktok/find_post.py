"""Did it go out after all? TikTok has no list to look at, only tasks whose publish_id it told."""

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers.job import Job
from socialpub.providers.outcomes import CannotTell, Done, Look, Published
from socialpub.providers.tiktok.status import COMPLETE, arrived, fetch, published


def look(job: Job, section: TikTokSection) -> Look | CannotTell | Done:
    """After an unknown commit: `Done` once all bytes are there, since then only TikTok's verdict counts."""
    if "publish_id" not in job.memo:
        return CannotTell(
            "TikTok has no way to look up a post whose publish_id it never told. Look at the profile, and at the inbox "
            "in TikTok's app, before you post it again."
        )
    task = fetch(job, section)
    lacking = task.uploaded_bytes is not None and not arrived(task, job.content.media[0].size_bytes)
    return Look(whole=False) if lacking else Done(job.memo)


def fill_in(job: Job, section: TikTokSection) -> Published | None:
    """Post id and address of a post that is published already; None while TikTok tells none, which may be for ever."""
    task = fetch(job, section)
    return published(job, section, task) if task.status == COMPLETE and task.post_ids else None
