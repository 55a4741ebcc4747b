"""TikTok, Content Posting API."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import (
    Account,
    AppLimits,
    CannotTell,
    Content,
    Done,
    Job,
    Options,
    Outcome,
    Problem,
    Published,
    Readback,
    Step,
)
from socialpub.providers.http import Http
from socialpub.providers.oauth import OAuth
from socialpub.providers.preview import Preview
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
from socialpub.providers.tiktok.client import CallRefused
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.providers.tiktok.oauth import TikTokOAuth


class TikTok:
    """Keeps no state but its section of the configuration."""

    name = "tiktok"
    label = "TikTok"

    def __init__(self, section: TikTokSection) -> None:
        self.section = section
        self.oauth: OAuth = TikTokOAuth(section)

    def account_url(self, username: str | None) -> str:
        return f"{self.section.site_url}/@{username}" if username else self.section.site_url

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        return options.read(given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        return options.merge(stored, own)

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        return check.problems(content, options, account, self.section)

    def notes(
        self,
        content: Content,
        options: Mapping[str, Any],
        account: Account | None = None,  # noqa: ARG002
    ) -> list[str]:
        return check.notes(content, options)

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:  # noqa: ARG002
        return []  # what a creator may do is asked before every direct post

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:
        is_draft = chosen is not None and options.is_draft(chosen)
        return None if self.section.audited or is_draft else sharing_guidelines.unaudited()

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG002
        return preview.preview_post(content, options)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        return plan.plan_steps(content, options)

    def run(self, step: str, job: Job) -> Outcome:
        return run(step, job, self.section)

    def recover(self, job: Job) -> Readback | CannotTell | Done:
        return read_back.check_account(job, self.section)

    def fill_in(self, job: Job) -> Published | None:
        """What TikTok tells of a post that is published already; None while it tells nothing."""
        return read_back.fill_in(job, self.section)

    def ask_creator(self, http: Http, token: str, scopes: Set[str]) -> CreatorInfo:
        """What the account may do at the moment, for an owner who is about to post. Raises `errors.py`."""
        return creator.ask_creator(http, self.section, token, scopes)


# MERGED from providers/tiktok/publish.py: Publishing on TikTok: one function per step, and how a refusal becomes t

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


def run(step: str, job: Job, section: TikTokSection) -> Outcome:
    """One step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""
    try:
        return STEPS[step](job, section)
    except CallRefused as error:
        if step == plan.AWAIT:
            raise  # a refused question is no verdict on the post
        return error.rejection.refused()
