"""What every network offers to publish on it.

Adding a network means one class that has all of this. It is handed a `Job`, holds one conversation, and returns an
outcome or raises one of `errors.py`; whoever runs it decides what to do with either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from socialpub.providers.content import Account, Content, Options, Problem
from socialpub.providers.job import Job
from socialpub.providers.oauth import OAuth
from socialpub.providers.outcomes import CannotTell, Done, Look, Outcome
from socialpub.providers.preview import Preview


class Kind(StrEnum):
    """What running a step twice would do."""

    PREPARE = "prepare"
    """An orphaned upload at worst."""

    POLL = "poll"
    """Nothing."""

    COMMIT = "commit"
    """A second public post. Exactly one per plan."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class AppLimits:
    """What a network does to this app, whatever is posted with it."""

    sentences: tuple[str, ...]
    why: str
    """Why it is so, and perhaps stays so."""
    remedy: str


class Provider(Protocol):
    @property
    def name(self) -> str:
        """As in the API: `x`, `tiktok`, `pinterest`."""
        ...

    @property
    def label(self) -> str:
        """As people write it: `X`, `TikTok`, `Pinterest`."""
        ...

    @property
    def oauth(self) -> OAuth: ...

    def account_url(self, username: str | None) -> str:
        """Where people look at what an account shows; the network's front page when its name is not known."""
        ...

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        """Canonical options and what is wrong with the given ones (paths start with `providerOptions`)."""
        ...

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        """Stored defaults under a post's own keys, which win in whatever spelling they come."""
        ...

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        """Everything about this post that the network would refuse. Pure; `validate` and the engine ask the same."""
        ...

    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
        """Return what the owner may like to know although nothing is wrong. Without an account, nothing is known of it
        and the rules for any account apply."""
        ...

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
        """What the network's facts about an account mean for its posts, as labels and values for the owner."""
        ...

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:
        """Return what the network does to this app, or with `chosen` to a post with these options; None when there
        is nothing to say."""
        ...

    def preview(self, content: Content, options: Mapping[str, Any], account: Account) -> Preview:
        """The post as readers would see it, and how long the network finds its texts. Pure; nothing in it is a
        problem, so that it can be shown of whatever there is already."""
        ...

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]: ...

    def run(self, step: str, job: Job) -> Outcome: ...

    def recover(self, job: Job) -> Look | CannotTell | Done:
        """One look at the account after an unknown commit. `Done`: the commit certainly arrived, and the steps after
        it tell what becomes of the post."""
        ...
