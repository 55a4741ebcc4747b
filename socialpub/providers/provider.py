"""A network as the rest of socialpub sees it. Adding a network means one class that has all of this.

The class is handed a `Job`, holds one conversation, and returns an outcome or raises one of `errors.py`. It does not
sleep or retry, reads no clock, and keeps no state of a post: all of that comes with the job.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from socialpub.core.errors import FieldError
from socialpub.providers import options
from socialpub.providers.base import (
    Account,
    AppLimits,
    CannotTell,
    Content,
    Done,
    Job,
    Outcome,
    Readback,
    Step,
)
from socialpub.providers.oauth import OAuth
from socialpub.providers.preview import Preview


class Provider(ABC):
    name: ClassVar[str]
    """As in the API: `x`, `tiktok`, `pinterest`."""
    label: ClassVar[str]
    """As people write it: `X`, `TikTok`, `Pinterest`."""
    option_table: ClassVar[options.Table]
    """What an owner may say about a post on this network."""
    oauth: OAuth

    @abstractmethod
    def account_url(self, username: str | None) -> str:
        """Return where people see what an account shows; the network's front page when its name is not known."""

    # --- before a post is accepted -----------------------------------------------------------------------------------

    def read_options(self, given: Mapping[str, Any]) -> tuple[options.Options, list[FieldError]]:
        """Return canonical options and what is wrong with the given ones (paths start with `providerOptions`)."""
        return options.read(self.name, self.option_table, given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> options.Options:
        """Return stored defaults under a post's own keys, which win in any spelling."""
        return options.merge(self.option_table, stored, own)

    @abstractmethod
    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
        """Return everything about this post that the network would refuse. Pure: `validate` and the engine ask it."""

    @abstractmethod
    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
        """Return what the owner may like to know although nothing is wrong. Without an account, the rules for any
        account apply."""

    @abstractmethod
    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:
        """Return the post as readers would see it, and how long the network finds its texts. Pure, for any content."""

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return what the network's facts about an account mean for its posts, as labels and values for the owner."""
        return []

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:  # noqa: ARG002
        """Return what the network does to this app, or with `chosen` to a post with these options; None: nothing."""
        return None

    # --- publishing --------------------------------------------------------------------------------------------------

    @abstractmethod
    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:
        """Return the steps of this post. Pure: the row stores the plan."""

    @abstractmethod
    def run(self, step: str, job: Job) -> Outcome:
        """Run one step of the plan. Raises `errors.py`, `Unfit`, and FileNotFoundError when a file is gone."""

    @abstractmethod
    def recover(self, job: Job) -> Readback | CannotTell | Done:
        """Read the account once after an unknown commit. `Done`: the commit certainly arrived, and the steps after it
        show what becomes of the post. Raises `errors.py` when the read-back was not answered."""
