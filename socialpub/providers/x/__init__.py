"""X (Twitter), API v2."""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.base import (
    Account,
    Again,
    AppLimits,
    CannotTell,
    Content,
    Job,
    Kind,
    Options,
    Outcome,
    Problem,
    Published,
    Readback,
    Refused,
    Step,
    Unknown,
    Wait,
)
from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.oauth import OAuth
from socialpub.providers.preview import Preview
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import check, client, limits, options, preview, read_back, upload
from socialpub.providers.x.client import call, classify, read_post_id
from socialpub.providers.x.oauth import XOAuth
from socialpub.providers.x.options import body_fields
from socialpub.providers.x.read_back import SpokenDialect
from socialpub.providers.x.upload import ready, start_over_expired


class X:
    """Keeps nothing but its section of the configuration, and in which names X's lists were last answered."""

    name = "x"
    label = "X"

    def __init__(self, section: XSection) -> None:
        self.section = section
        self.oauth: OAuth = XOAuth(section)
        self._spoken = SpokenDialect()

    def account_url(self, username: str | None) -> str:
        return f"{self.section.site_url}/{username}" if username else self.section.site_url

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        return options.read(given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        return options.merge(stored, own)

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        return check.problems(content, options, account)

    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
        return check.notes(content, options, account or Account(""))

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        allowed = limits.entitlement(facts)
        return [
            ("Subscription", str(facts.get("subscription_type") or "not known")),
            ("Longest text", f"{allowed.text_length:,} characters"),
            ("Longest video", f"{allowed.video_seconds // 60} minutes"),
        ]

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:  # noqa: ARG002
        return None

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:
        return preview.preview_post(content, options, account)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:  # noqa: ARG002
        return plan(content)

    def run(self, step: str, job: Job) -> Outcome:
        return run(step, job, self.section)

    def recover(self, job: Job) -> Readback | CannotTell:
        return read_back.check_account(job, self.section, self._spoken)


# MERGED from providers/x/plan.py: The steps of a post on X: the files first, then one call that makes the post.

CREATE = "create_post"


def plan(content: Content) -> list[Step]:
    """A pure function of the content."""
    files = [step for index, media in enumerate(content.media) for step in upload.upload_steps(index, media)]
    return [*files, Step(CREATE, Kind.COMMIT)]


# MERGED from providers/x/publish.py: Publishing on X: one function per step, and the one call that makes the post.

CREATES, UPLOADS = 3, 2
"""In all, when X keeps saying that the media ids are invalid."""
NOT_ACCEPTED = "X does not accept the media: they are sent once more."
FRESH_SECONDS = 10
"""Media that X finished so recently may merely not be known everywhere yet."""
RETRY_SECONDS = 4

FILE_STEPS = {
    upload.UPLOAD_IMAGE: upload.upload_image,
    upload.INIT: upload.initialize,
    upload.APPEND: upload.append,
    upload.FINALIZE: upload.finalize,
    upload.AWAIT: upload.await_processing,
    upload.ALT_TEXT: upload.set_alt_text,
}


def run(step: str, job: Job, section: XSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    name, _, index = step.partition(":")
    return create(job, section) if name == CREATE else FILE_STEPS[name](job, section, int(index))


def create(job: Job, section: XSection) -> Outcome:
    for index in range(len(job.content.media)):
        if not ready(job, index):
            return start_over_expired(job, index)
    response = call(job, "POST", f"{section.api_url}/2/tweets", json=request_body(job.content, job.options, job.memo))
    if response.ok:
        post_id = read_post_id(response)
        return Published(post_id, client.permalink(section, job.account.username, post_id))
    return _refused(job, response)


def request_body(content: Content, chosen: Mapping[str, Any], memo: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `POST /2/tweets`; X forbids unknown ones, and null or false where a field may be left out."""
    # An empty text is sent as well: behind X's gateway an absent one is refused.
    body: dict[str, Any] = {"text": content.text}
    if content.media:
        ids = [memo["media"][str(index)]["id"] for index in range(len(content.media))]
        body["media"] = {"media_ids": ids}
    return {**body, **body_fields(chosen)}


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
    first = plan(job.content)[0].name
    return Again(first, memo, NOT_ACCEPTED, limit=UPLOADS - 1, otherwise=given_up)
