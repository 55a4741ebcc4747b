"""The adapter between the engine and everything that is peculiar to Pinterest."""

from collections.abc import Mapping, Sequence
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.content import Account, Content, Options, Problem
from socialpub.providers.http import Http
from socialpub.providers.job import Job
from socialpub.providers.oauth import OAuth
from socialpub.providers.outcomes import CannotTell, Look, Outcome
from socialpub.providers.pinterest import boards, check, find_post, options, plan, preview, publish
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.providers.pinterest.oauth import PinterestOAuth, how_to_use_secret_boards
from socialpub.providers.preview import Preview
from socialpub.providers.protocol import AppLimits, Step


class Pinterest:
    """Keeps no state but its section of the configuration."""

    name = "pinterest"
    label = "Pinterest"

    def __init__(self, section: PinterestSection) -> None:
        self.section = section
        self.oauth: OAuth = PinterestOAuth(section)

    def account_url(self, username: str | None) -> str:
        return f"{self.section.site_url}/{username}/" if username else self.section.site_url

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

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("Account type", str(facts["account_type"]).lower())] if facts.get("account_type") else []

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:  # noqa: ARG002
        return None

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG002
        return preview.preview_of(content, options)

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        return plan.plan(content, options)

    def run(self, step: str, job: Job) -> Outcome:
        return publish.run(step, job, self.section)

    def recover(self, job: Job) -> Look | CannotTell:
        return find_post.look(job, self.section)

    def list_boards(self, http: Http, token: str) -> list[Board]:
        """The boards of the account that a pin can be put on. Raises `errors.py`."""
        return boards.list_boards(http, self.section.api_url, token)

    def list_sections(self, http: Http, token: str, board_id: str) -> list[BoardSection]:
        """The sections of one of its boards. Raises `errors.py`."""
        return boards.list_sections(http, self.section.api_url, token, board_id)

    def create_board(self, http: Http, token: str, name: str, *, secret: bool) -> Board:
        """Create a board of the account. Raises `errors.py`; after `NoAnswer` it may be there."""
        return boards.create_board(http, self.section.api_url, token, name, secret=secret)

    def create_section(self, http: Http, token: str, board_id: str, name: str) -> BoardSection:
        """Create a section of one of its boards. Raises as `create_board` does."""
        return boards.create_section(http, self.section.api_url, token, board_id, name)

    def how_to_use_secret_boards(self, granted: frozenset[str]) -> str | None:
        """What the owner does so that a connection with these scopes can use secret boards; None when it can."""
        return how_to_use_secret_boards(granted, self.section)
