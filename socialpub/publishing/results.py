"""What one run of a step can come to, beside what a network's own outcomes say (`providers/outcomes.py`)."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from socialpub.providers.content import Content
from socialpub.providers.outcomes import Outcome, Refused


@dataclass(frozen=True, slots=True)
class Retry:
    """A failure that passes: ask again in `seconds`, or after a growing pause. It certainly made nothing public."""

    message: str
    code: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limited:
    """A rate limit of this profile and these endpoints: ask again in `seconds` (None: the network named no time)."""

    seconds: float | None
    endpoints: Set[str]
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """One more answered look at the account, and the post is not there. `whole` as in `Look`."""

    seen_at: float
    """When it was answered, on the monotonic clock: writing it down may take the disk a while."""
    whole: bool = True
    similar: bool = False
    """Something is there that no other delivery made and that could be it, but for its words."""
    asked: bool = True
    """False: the network cannot be asked, or does not answer this app."""


@dataclass(frozen=True, slots=True)
class NeedsOwner:
    """The account must be connected again before anything else is asked for it. `message` says how."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Undecidable:
    """The network cannot tell what became of the commit. `hint` says where the owner can look."""

    hint: str


Result = Outcome | Retry | Limited | Missing | NeedsOwner | Undecidable


@dataclass(frozen=True, slots=True)
class Preflight:
    """What the first claim stores: the plan, or why there is none. Made from the content by `engine.prepare`."""

    content: Content
    options: Mapping[str, Any]
    plan: tuple[tuple[str, str], ...] = ()
    refused: Refused | None = None
    later: str | None = None
    """Why it could not be made just now."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a step has to tell beside its result."""

    started_at: str
    code: str | None = None
    request_id: str | None = None
    answered: bool = False
    """Whether the network answered at all."""
    message: str | None = None
    grant: bytes | None = field(default=None, repr=False)
    """The sealed access token that was used last."""
