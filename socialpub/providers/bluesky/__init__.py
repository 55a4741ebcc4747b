"""Bluesky (AT Protocol): uploads the media, then writes the post's record with one call.

The record's key is chosen before the first call, so the call is repeatable: the same key and record cannot create a
second post.
"""

from collections.abc import Sequence
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.auth import Account
from socialpub.providers.base import CannotTell, Content, Job, Outcome, Provider, Readback, Step
from socialpub.providers.bluesky import options
from socialpub.providers.bluesky.auth import BlueskySignIn
from socialpub.providers.bluesky.check import list_notes, list_problems
from socialpub.providers.bluesky.preview import preview_post


class Bluesky(Provider):
    name = "bluesky"
    label = "Bluesky"
    is_extension = True
    option_table = options.TABLE
    check = staticmethod(list_problems)
    notes = staticmethod(list_notes)
    preview = staticmethod(preview_post)

    def __init__(self, section: BlueskySection) -> None:
        self.section = section
        self.auth = BlueskySignIn(section)

    def account_url(self, account: Account | None) -> str:
        site = self.section.site_url
        return f"{site}/profile/{account.id}" if account and account.id else site

    def plan(self, content: Content, options: Any) -> Sequence[Step]:
        raise NotImplementedError

    def run(self, step: str, job: Job) -> Outcome:
        raise NotImplementedError

    def recover(self, job: Job) -> Readback | CannotTell:
        raise NotImplementedError
