"""The result of a run: an outcome of the network's adapter, or a result of the engine itself."""

from collections.abc import Set
from dataclasses import dataclass

from socialpub.providers.base import Outcome
from socialpub.publishing.delivery.read_back import NotFoundOnAccount


@dataclass(frozen=True, slots=True)
class Retry:
    """A temporary failure that made nothing public: retry in `seconds`, or with backoff."""

    message: str
    code: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limited:
    """A rate limit of this profile and these endpoints: call again in `seconds` (None: no time reported)."""

    seconds: float | None
    endpoints: Set[str]
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class NeedsReauth:
    """The account must be connected again before the next call. `message` describes how."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Undecidable:
    """The network cannot report the outcome of the commit. The message describes where the owner can look."""

    message: str


Result = Outcome | Retry | Limited | NotFoundOnAccount | NeedsReauth | Undecidable
