"""Publishing on TikTok: one function per step, and how a refusal becomes the end of a post.

TikTok has no idempotency key. The publish_id is written down before the first byte leaves, and from the commit on the
task is only observed.
"""

from collections.abc import Callable, Mapping

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Outcome
from socialpub.providers.tiktok import await_outcome, creator, last_chunk, photos, plan, upload, video
from socialpub.providers.tiktok.client import CallRefused

STEPS: Mapping[str, Callable[[Job, TikTokSection], Outcome]] = {
    plan.CREATOR: creator.creator_info,
    plan.INIT_VIDEO: video.init_video,
    plan.INIT_DRAFT: video.init_draft,
    plan.SEND_CHUNKS: upload.send_chunks,
    plan.SEND_LAST: last_chunk.send_last,
    plan.FIT_PHOTOS: photos.fit_photos,
    plan.INIT_PHOTOS: photos.init_photos,
    plan.INIT_PHOTO_DRAFT: photos.init_photos,
    plan.AWAIT: await_outcome.await_outcome,
    plan.SETTLE_DRAFT: await_outcome.settle_draft,
}


def run(step: str, job: Job, section: TikTokSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    try:
        return STEPS[step](job, section)
    except CallRefused as error:
        if step == plan.AWAIT:
            raise  # a refused question is no verdict on the post
        return error.rejection.refused()
