"""TikTok, Content Posting API: a video becomes a post with its last byte, photos with the call that names them.

TikTok has no idempotency key. The publish_id is stored before the first byte leaves, and from the commit on the task
is only observed.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import (
    Account,
    AppLimits,
    CannotTell,
    Content,
    Done,
    Job,
    Outcome,
    Published,
    Readback,
    Step,
)
from socialpub.providers.error_table import as_outcome
from socialpub.providers.errors import Rejected
from socialpub.providers.http import Http
from socialpub.providers.preview import Preview
from socialpub.providers.provider import Provider
from socialpub.providers.tiktok import (
    check,
    creator,
    options,
    photos,
    plan,
    preview,
    read_back,
    sharing_guidelines,
    upload,
)
from socialpub.providers.tiktok.oauth import TikTokOAuth

STEPS: Mapping[str, Callable[[Job, TikTokSection], Outcome]] = {
    plan.CREATOR: creator.creator_info,
    plan.INIT_VIDEO: upload.init_video,
    plan.INIT_DRAFT: upload.init_draft,
    plan.SEND_CHUNKS: upload.send_chunks,
    plan.SEND_LAST: upload.send_last,
    plan.FIT_PHOTOS: photos.fit_photos,
    plan.INIT_PHOTOS: photos.init_photos,
    plan.INIT_PHOTO_DRAFT: photos.init_photos,
    plan.AWAIT: read_back.await_outcome,
    plan.SETTLE_DRAFT: read_back.settle_draft,
}


class TikTok(Provider):
    """Keeps no state but its section of the configuration."""

    name = "tiktok"
    label = "TikTok"
    option_table = options.TABLE

    def __init__(self, section: TikTokSection) -> None:
        self.section = section
        self.oauth = TikTokOAuth(section)

    def account_url(self, username: str | None) -> str:
        return f"{self.section.site_url}/@{username}" if username else self.section.site_url

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
        return check.problems(content, options, account, self.section)

    def notes(
        self,
        content: Content,
        options: Mapping[str, Any],
        account: Account | None = None,  # noqa: ARG002
    ) -> list[str]:
        return check.notes(content, options)

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG002
        return preview.preview_post(content, options)

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:
        is_draft = chosen is not None and options.is_draft(chosen)
        return None if self.section.audited or is_draft else sharing_guidelines.unaudited()

    def ask_creator(self, http: Http, token: str, scopes: Set[str]) -> creator.CreatorInfo:
        """Return what the account may do now, for an owner who is about to post. Raises `errors.py`."""
        return creator.ask_creator(http, self.section, token, scopes)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        return plan.plan_steps(content, options)

    def run(self, step: str, job: Job) -> Outcome:
        try:
            return STEPS[step](job, self.section)
        except Rejected as error:
            if step == plan.AWAIT:
                raise  # a refused question is no verdict on the post
            return as_outcome(error)

    def recover(self, job: Job) -> Readback | CannotTell | Done:
        return read_back.check_account(job, self.section)

    def fill_in(self, job: Job) -> Published | None:
        """Return id and address of a post that is published already; None while TikTok does not name them."""
        return read_back.fill_in(job, self.section)
