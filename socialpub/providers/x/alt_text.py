"""Alt texts of pictures on X. X does not insist on one, so the post goes out without it rather than not at all."""

from socialpub.core.settings.networks import XSection
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome, Wait
from socialpub.providers.x import limits
from socialpub.providers.x.client import call, data_of
from socialpub.providers.x.errors import classify
from socialpub.providers.x.upload_memo import recall, remember, start_over_expired

TRIES = 5


def describe(job: Job, section: XSection, index: int) -> Outcome:
    """Give a picture its alt text."""
    media, upload = job.content.media[index], recall(job.memo, index)
    if upload.get("described") or not media.alt:
        return Done(job.memo)
    if not upload.get("id"):
        return start_over_expired(job, index)
    body = {"id": upload["id"], "metadata": {"alt_text": {"text": media.alt[: limits.ALT_LENGTH]}}}
    failure = None
    try:
        response = call(job, "POST", f"{section.api_url}/2/media/metadata", json=body)
        if response.ok:
            data_of(response)
        else:
            failure = classify(response, now=job.now, media=True).message
    except NoAnswer as error:
        upload["alt_tries"] = upload.get("alt_tries", 0) + 1
        if upload["alt_tries"] < TRIES:
            pause = 5.0 * 2 ** upload["alt_tries"]
            return Wait(pause, "X did not take the alt text yet", remember(job.memo, index, upload))
        failure = error.message
    memo = remember(job.memo, index, {**upload, "described": True})
    if failure is not None:
        # Read by whoever shows the delivery.
        memo["notes"] = [*memo.get("notes", []), f"Published without the alt text of media item {index + 1}: {failure}"]
    return Done(memo)
