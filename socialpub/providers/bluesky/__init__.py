"""Bluesky (AT Protocol): uploads the media, then writes the post's record with one call.

The record's key is chosen before the first call, so the call is repeatable: the same key and record cannot create a
second post.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.auth import SERVER, Account
from socialpub.providers.base import CannotTell, Content, Job, Kind, Outcome, Provider, Readback, Step
from socialpub.providers.bluesky import card, options, publish, read_back, servers, upload
from socialpub.providers.bluesky.auth import BlueskySignIn
from socialpub.providers.bluesky.check import list_notes, list_problems, unconfirmed_email
from socialpub.providers.bluesky.preview import preview_post


class Bluesky(Provider):
    name = "bluesky"
    label = "Bluesky"
    option_table = options.TABLE
    check = staticmethod(list_problems)
    notes = staticmethod(list_notes)
    preview = staticmethod(preview_post)
    card_link = staticmethod(card.card_link)
    read_card = staticmethod(card.read_card)

    def __init__(self, section: BlueskySection) -> None:
        self.section = section
        self.auth = BlueskySignIn(section)

    def account_url(self, account: Account | None) -> str:
        site = self.section.site_url
        return f"{site}/profile/{account.username or account.id}" if account and account.id else site

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        limit, email = facts.get(servers.BLOB_LIMIT), facts.get(servers.EMAIL_CONFIRMED)
        words = {True: "confirmed", False: "not confirmed: Bluesky does not show videos of this account"}
        return [
            ("Server", urlsplit(facts.get(SERVER) or self.section.service).netloc),
            ("Largest file", f"{limit / 1_000_000:,.0f} MB" if limit else "not known"),
            *([("Email address", words[email])] if email in words else ()),
        ]

    def account_notes(self, account: Account) -> list[str]:
        return list(filter(None, [unconfirmed_email(account)]))

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        has_card = card.card_link(content, options) is not None
        return [
            *upload.plan(content),
            *([Step(publish.CARD, Kind.PREPARE)] if has_card else ()),
            Step(publish.RECORD, Kind.PREPARE),
            Step(publish.PUBLISH, Kind.REPEATABLE),
        ]

    def run(self, step: str, job: Job) -> Outcome:
        name, _, index = step.partition(":")
        match name:
            case upload.UPLOAD:
                return upload.upload_item(job, self.section, int(index))
            case publish.CARD:
                return card.attach_card(job, self.section)
            case publish.RECORD:
                return publish.build_record(job, self.section)
            case _:
                return publish.publish(job, self.section)

    def recover(self, job: Job) -> Readback | CannotTell:
        return read_back.check_account(job, self.section)
