"""TikTok, Content Posting API: the last byte of a video, or the call with the photos, creates the post.

TikTok has no idempotency key. The publish_id is stored before the first byte leaves. After the commit, socialpub only
polls the task.
"""

from collections.abc import Callable, Mapping, Set
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.base import AppLimits, CannotTell, Content, Done, Job, Outcome, Provider, Published, Readback
from socialpub.providers.error_table import as_outcome
from socialpub.providers.http import Http
from socialpub.providers.responses import Rejected
from socialpub.providers.tiktok import creator, options, read_back, upload
from socialpub.providers.tiktok.auth import TikTokOAuth
from socialpub.providers.tiktok.check import list_notes, list_problems
from socialpub.providers.tiktok.options import plan_steps
from socialpub.providers.tiktok.preview import preview_post

STEPS: Mapping[str, Callable[[Job, TikTokSection], Outcome]] = {
    options.CREATOR: creator.creator_info,
    options.INIT_VIDEO: upload.init_video,
    options.INIT_DRAFT: upload.init_draft,
    options.SEND_CHUNKS: upload.send_chunks,
    options.SEND_LAST: upload.send_last,
    options.FIT_PHOTOS: upload.fit_photos,
    options.INIT_PHOTOS: upload.init_photos,
    options.INIT_PHOTO_DRAFT: upload.init_photos,
    options.AWAIT: read_back.await_outcome,
    options.SETTLE_DRAFT: read_back.settle_draft,
}


class TikTok(Provider):
    name = "tiktok"
    label = "TikTok"
    option_table = options.TABLE
    notes = staticmethod(list_notes)
    preview = staticmethod(preview_post)
    plan = staticmethod(plan_steps)

    def __init__(self, section: TikTokSection) -> None:
        self.section = section
        self.auth = TikTokOAuth(section)

    def account_url(self, account: Account | None) -> str:
        site = self.section.site_url
        return f"{site}/@{account.username}" if account and account.username else site

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
        return list_problems(content, options, account, self.section)

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:
        is_draft = chosen is not None and options.is_draft(chosen)
        return None if self.section.audited or is_draft else creator.unaudited()

    def ask_creator(self, http: Http, token: str, scopes: Set[str]) -> creator.CreatorInfo:
        return creator.ask_creator(http, self.section, token, scopes)

    def run(self, step: str, job: Job) -> Outcome:
        try:
            return STEPS[step](job, self.section)
        except Rejected as error:
            if step == options.AWAIT:
                raise  # a refused poll is not a verdict on the post
            return as_outcome(error)

    def recover(self, job: Job) -> Readback | CannotTell | Done:
        return read_back.check_account(job, self.section)

    def fill_in(self, job: Job) -> Published | None:
        return read_back.fill_in(job, self.section)
