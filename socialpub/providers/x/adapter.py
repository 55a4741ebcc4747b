"""The adapter between the engine and everything that is peculiar to X."""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.content import Account, Content, Options, Problem
from socialpub.providers.job import Job
from socialpub.providers.oauth import OAuth
from socialpub.providers.outcomes import CannotTell, Look, Outcome
from socialpub.providers.preview import Preview
from socialpub.providers.protocol import AppLimits, Step
from socialpub.providers.x import check, find_post, limits, options, plan, preview, publish
from socialpub.providers.x.dialects import SpokenDialect
from socialpub.providers.x.oauth import XOAuth


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
        return preview.preview_of(content, options, account)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:  # noqa: ARG002
        return plan.plan(content)

    def run(self, step: str, job: Job) -> Outcome:
        return publish.run(step, job, self.section)

    def recover(self, job: Job) -> Look | CannotTell:
        return find_post.look(job, self.section, self._spoken)
