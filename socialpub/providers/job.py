"""What one run of one step may know and use.

An adapter sleeps nowhere, retries nothing, reads no clock and keeps no state: all of that comes with the job.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from socialpub.providers.content import Account, Content, ImageLimits, MediaFile
from socialpub.providers.outcomes import Memo
from socialpub.providers.responses import HttpResponse


@dataclass(slots=True)
class CallTrace:
    """What the last call showed, for the attempt's row."""

    request_id: str | None = None
    code: str | None = None
    message: str | None = None
    """Shown with a step that went well; never a secret."""
    answered: bool = False
    """Whether any call was answered; noted by the engine."""
    grant: bytes | None = None
    """The sealed access token of these calls; noted by the engine."""


class Call(Protocol):
    """`Http.call` with the gate before it: see `http.py` for the arguments."""

    def __call__(self, method: str, url: str, **kwargs: Any) -> HttpResponse: ...


def _no_key(_: str) -> str:
    raise ValueError("this job was given no key to seal with")


def _no_address(_: MediaFile) -> str:
    raise ValueError("this job was given no address to serve files from")


def _no_commit() -> datetime:
    raise ValueError("there is nothing to read back before a commit")


@dataclass(slots=True)
class Job:
    """Everything one run of one step may know and use."""

    content: Content
    options: Mapping[str, Any]
    """As accepted by the adapter's `read_options`: canonical camelCase keys only."""
    account: Account
    memo: Memo
    token: str = field(repr=False)
    call: Call
    """Raises `Withdrawn` when the profile was disconnected or the post stopped meanwhile."""
    fit: Callable[[MediaFile, ImageLimits], MediaFile]
    """A version of the image within the limits and without metadata (the file itself when it is so). Raises `Unfit`."""
    now: datetime
    """When this run began, on a clock of ours that goes on evenly when the wall clock is set. It is for pauses and ages
    in the memo; what a network dates is compared with `since` and with the `Date` of its answers."""
    slice_over: Callable[[], bool]
    """True when this run has had its ten seconds: return `More` and come back."""
    committed_at: datetime | None = None
    """When the commit was announced, on the clock of `now`; where its outcome is unknown, the first of the two."""
    since: Callable[[], datetime] = field(default=_no_commit, repr=False)
    """The earliest moment, on the network's own clock, at which what the commit made can be dated; a margin is in it.
    It becomes narrower once the network has answered in this run: ask again after the answer."""
    unknown_before: bool = False
    """The commit has run once before with an unknown outcome (a "duplicate" answer is then good news)."""
    public_url: Callable[[MediaFile], str] = field(default=_no_address, repr=False)
    """A signed address under which the network can fetch exactly this file, an original or a fitted version. It is a
    secret: made anew for each call and never kept."""
    seal: Callable[[str], str] = field(default=_no_key, repr=False)
    """Encrypts what must wait in the memo although it is a secret (a signed upload address)."""
    open: Callable[[str], str] = field(default=_no_key, repr=False)
    """The text of `seal`."""
    times_back: Mapping[str, int] = field(default_factory=dict)
    """How often this delivery went back to an earlier step, per reason."""
    trace: CallTrace = field(default_factory=CallTrace)

    def times(self, reason: str) -> int:
        """How often it went back for this reason."""
        return self.times_back.get(reason, 0)


class Withdrawn(Exception):
    """Nothing may be sent any more: the profile was disconnected or the post stopped."""


class Unfit(Exception):
    """No version of this file satisfies the limits; the message says which limit and the found value."""
