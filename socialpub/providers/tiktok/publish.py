"""Publishing on TikTok: one function per step, and how a refusal becomes the end of a post.

TikTok has no idempotency key. The publish_id is written down before the first byte leaves, and from the commit on the
task is only observed.
"""

from collections.abc import Callable, Mapping

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Outcome
from socialpub.providers.tiktok import creator, photos, status, steps, upload, video
from socialpub.providers.tiktok.talk import Denied

STEPS: Mapping[str, Callable[[Job, TikTokSection], Outcome]] = {
    steps.CREATOR: creator.creator_info,
    steps.INIT_VIDEO: video.init_video,
    steps.INIT_DRAFT: video.init_draft,
    steps.SEND_CHUNKS: upload.send_chunks,
    steps.SEND_LAST: upload.send_last,
    steps.FIT_PHOTOS: photos.fit_photos,
    steps.INIT_PHOTOS: photos.init_photos,
    steps.INIT_PHOTO_DRAFT: photos.init_photos,
    steps.AWAIT: status.await_outcome,
    steps.SETTLE_DRAFT: status.settle_draft,
}


def run(step: str, job: Job, section: TikTokSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    try:
        return STEPS[step](job, section)
    except Denied as no:
        if step == steps.AWAIT:
            raise  # a refused question is no verdict on the post
        return no.refused()
