"""Publishing on X: the files first, then one call that makes the post.

X offers no idempotency key, so that call is sent once per permission, and every answer to it that is neither a post
nor a refusal leaves the question open for whoever reads the account back.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.content import Content
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Outcome, Published, Refused, Unknown, Wait
from socialpub.providers.protocol import Kind, Step
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import options as own_options
from socialpub.providers.x import upload
from socialpub.providers.x.errors import Verdict, judge
from socialpub.providers.x.refusals import Why
from socialpub.providers.x.talk import ask, post_id_of, succeeded

CREATE = "create_post"
CREATES, UPLOADS = 3, 2
"""In all, when X keeps saying that the media ids are invalid."""
FRESH_SECONDS = 10
"""Media that X finished so recently may merely not be known everywhere yet."""
RETRY_SECONDS = 4


def plan(content: Content) -> list[Step]:
    """The steps of a post, a pure function of its content."""
    files = [step for index, media in enumerate(content.media) for step in upload.steps(index, media)]
    return [*files, Step(CREATE, Kind.COMMIT)]


def run(step: str, job: Job, api: str) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    name, _, index = step.partition(":")
    return create(job, api) if name == CREATE else FILE_STEPS[name](job, api, int(index))


FILE_STEPS = {
    "upload": upload.upload_image,
    "init": upload.initialize,
    "append": upload.append,
    "finalize": upload.finalize,
    "await": upload.await_processing,
    "alt": upload.describe,
}


def create(job: Job, api: str) -> Outcome:
    for index in range(len(job.content.media)):
        if not upload.ready(job, index):
            return upload.lost(job, index)
    answer = ask(job, "POST", f"{api}/2/tweets", json=request_body(job.content, job.options, job.memo))
    if succeeded(answer):
        post_id = post_id_of(answer)
        return Published(post_id, permalink(job.account.username, post_id))
    return _refused(job, answer)


def request_body(content: Content, chosen: Mapping[str, Any], memo: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `POST /2/tweets`; X forbids unknown ones, and null or false where a field may be left out."""
    body: dict[str, Any] = {"text": content.text} if content.text else {}
    if content.media:
        ids = [memo["media"][str(index)]["id"] for index in range(len(content.media))]
        body["media"] = {"media_ids": ids}
    return {**body, **own_options.body_fields(chosen)}


def permalink(username: str | None, post_id: str) -> str:
    return f"https://x.com/{username or 'i'}/status/{post_id}"


def _refused(job: Job, answer: HttpResponse) -> Outcome:
    no = judge(answer, endpoint="POST /2/tweets", now=job.now)
    if no.why is Why.DUPLICATE and job.unknown_before:
        return Unknown("X says that it has this text already, so the earlier attempt probably went through.", no.code)
    if no.why is Why.MEDIA_INVALID and job.content.media:
        return _again_with_media(job, no)
    return no.refused()


def _again_with_media(job: Job, no: Verdict) -> Outcome:
    """Not processed yet, expired or out of spec: X says the same for all. Wait once, upload once more, then give up."""
    creates = job.memo.get("creates", 0) + 1
    uploads = job.memo.get("uploads", 1)
    memo = {**job.memo, "creates": creates}
    finished_at = max(memo["media"][str(index)]["ready_at"] for index in range(len(job.content.media)))
    if creates < CREATES:
        if not memo.get("waited") and job.now.timestamp() - finished_at < FRESH_SECONDS:
            return Wait(RETRY_SECONDS, "X does not know the media yet", {**memo, "waited": True})
        if uploads < UPLOADS:
            memo = {**memo, "uploads": uploads + 1, "waited": False, "media": {}}
            return Again(plan(job.content)[0].name, memo, "X does not accept the media: they are sent once more.")
    return Refused(
        f"{no.message} They were sent {uploads} times. A video must be H.264 in MP4, at most 60 frames a second and "
        "1280 pixels wide; pictures that are smaller than 5 MB sometimes help.",
        no.code,
    )
