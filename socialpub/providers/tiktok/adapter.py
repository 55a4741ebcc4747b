"""The adapter between the engine and everything that is peculiar to TikTok."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.content import Account, Content, Options, Problem
from socialpub.providers.http import Http
from socialpub.providers.job import Job
from socialpub.providers.oauth import OAuth
from socialpub.providers.outcomes import CannotTell, Done, Look, Outcome, Published
from socialpub.providers.preview import Preview
from socialpub.providers.protocol import AppLimits, Step
from socialpub.providers.tiktok import check, creator, find_post, options, plan, preview, publish, sharing_guidelines
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
        return preview.preview_of(content, options)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        return plan.plan(content, options)

    def run(self, step: str, job: Job) -> Outcome:
        return publish.run(step, job, self.section)

    def recover(self, job: Job) -> Look | CannotTell | Done:
        return find_post.look(job, self.section)

    def fill_in(self, job: Job) -> Published | None:
        """What TikTok tells of a post that is published already; None while it tells nothing."""
        return find_post.fill_in(job, self.section)

    def ask_creator(self, http: Http, token: str, scopes: Set[str]) -> CreatorInfo:
        """What the account may do at the moment, for an owner who is about to post. Raises `errors.py`."""
        return creator.ask_creator(http, self.section, token, scopes)
