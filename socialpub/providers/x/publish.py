"""Publishing on X: one function per step, and the one call that makes the post.

X offers no idempotency key, so that call is sent once per permission, and every answer to it that is neither a post
nor a refusal leaves the question open for whoever reads the account back.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.content import Content
from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Outcome, Published, Refused, Unknown, Wait
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import alt_text, plan, upload
from socialpub.providers.x.client import call, post_id_of
from socialpub.providers.x.errors import classify
from socialpub.providers.x.options import body_fields
from socialpub.providers.x.upload_memo import ready, start_over_expired

CREATES, UPLOADS = 3, 2
"""In all, when X keeps saying that the media ids are invalid."""
NOT_ACCEPTED = "X does not accept the media: they are sent once more."
FRESH_SECONDS = 10
"""Media that X finished so recently may merely not be known everywhere yet."""
RETRY_SECONDS = 4

FILE_STEPS = {
    plan.UPLOAD_IMAGE: upload.upload_image,
    plan.INIT: upload.initialize,
    plan.APPEND: upload.append,
    plan.FINALIZE: upload.finalize,
    plan.AWAIT: upload.await_processing,
    plan.ALT_TEXT: alt_text.describe,
}


def run(step: str, job: Job, section: XSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    name, _, index = step.partition(":")
    return create(job, section) if name == plan.CREATE else FILE_STEPS[name](job, section, int(index))


def create(job: Job, section: XSection) -> Outcome:
    for index in range(len(job.content.media)):
        if not ready(job, index):
            return start_over_expired(job, index)
    response = call(job, "POST", f"{section.api_url}/2/tweets", json=request_body(job.content, job.options, job.memo))
    if response.ok:
        post_id = post_id_of(response)
        return Published(post_id, permalink(section, job.account.username, post_id))
    return _refused(job, response)


def request_body(content: Content, chosen: Mapping[str, Any], memo: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `POST /2/tweets`; X forbids unknown ones, and null or false where a field may be left out."""
    # An empty text is sent as well: behind X's gateway an absent one is refused.
    body: dict[str, Any] = {"text": content.text}
    if content.media:
        ids = [memo["media"][str(index)]["id"] for index in range(len(content.media))]
        body["media"] = {"media_ids": ids}
    return {**body, **body_fields(chosen)}


def permalink(section: XSection, username: str | None, post_id: str) -> str:
    return f"{section.site_url}/{username or 'i'}/status/{post_id}"


def _refused(job: Job, response: HttpResponse) -> Outcome:
    rejection = classify(response, now=job.now)
    if rejection.reason is Reason.DUPLICATE and job.unknown_before:
        message = "X says that it has this text already, so the earlier attempt probably went through."
        return Unknown(message, rejection.code)
    if rejection.reason is Reason.MEDIA_INVALID and job.content.media:
        return _again_with_media(job, rejection)
    return rejection.refused()


def _again_with_media(job: Job, rejection: Rejection) -> Outcome:
    """Not processed yet, expired or out of spec: X says the same for all. Wait once, upload once more, then give up."""
    creates = job.memo.get("creates", 0) + 1
    uploads = 1 + job.times(NOT_ACCEPTED)
    memo = {**job.memo, "creates": creates}
    finished_at = max(memo["media"][str(index)]["ready_at"] for index in range(len(job.content.media)))
    given_up = Refused(
        f"{rejection.message} They were sent {uploads} times. A video must be H.264 in MP4, at most 60 frames a second "
        "and 1280 pixels wide; pictures that are smaller than 5 MB sometimes help.",
        rejection.code,
        content=True,
    )
    if creates >= CREATES:
        return given_up
    if not memo.get("waited") and job.now.timestamp() - finished_at < FRESH_SECONDS:
        return Wait(RETRY_SECONDS, "X does not know the media yet", {**memo, "waited": True})
    memo = {**memo, "waited": False, "media": {}}
    first = plan.plan(job.content)[0].name
    return Again(first, memo, NOT_ACCEPTED, limit=UPLOADS - 1, otherwise=given_up)
