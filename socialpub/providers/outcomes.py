"""What one run of a step came to, and what one look at the account showed.

Outcomes speak about the post; exceptions (`errors.py`) speak about the call.
"""

from dataclasses import dataclass, field
from typing import Any

Memo = dict[str, Any]
"""What a delivery remembers between steps: JSON, no secrets. Sentences under `notes` are shown with the post, and what
the network calls the values of options stands under `LABELS`, by key."""
LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Done:
    """The step is through; `memo` is kept for the next ones."""

    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class More:
    """The step goes on at once (more chunks)."""

    memo: Memo


@dataclass(frozen=True, slots=True)
class Again:
    """Back to an earlier step, at most `limit` times per delivery for this `reason`; then `otherwise`.

    The engine counts per `reason`, word by word also across an upgrade, and an adapter asks `Job.times`."""

    step: str
    memo: Memo
    reason: str
    limit: int = 1
    seconds: float = 0.0
    otherwise: "Outcome | None" = None
    """None: refused, with `reason` as the message."""

    def after(self, times: int) -> "Outcome":
        """What it comes to for a delivery that went back for this reason so often already."""
        if times < self.limit:
            return self
        return Refused(self.reason) if self.otherwise is None else self.otherwise


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask the same step again in `seconds`; waiting is not failing. `reason` is shown ("X is processing the video")."""

    seconds: float
    reason: str
    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """The app, not this post: hold the whole network and probe slowly. From a question (reading back, a poll) it holds
    questions only. `this_step`: hold no more than the steps of this name (an upload that goes nowhere)."""

    reason: str
    code: str | None = None
    this_step: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """Exactly one post is up."""

    post_id: str | None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Certain that nothing was posted. `message` says what to change. `reauth`: the owner must connect again.

    `rest_seconds`: leave this profile alone for that long (a suspended or cooling account). `verdict`: the network
    said of this very post that it failed; only then does it count from a poll after the commit. `content`: the post
    itself was refused, so the same post would be refused again. `too_long`: it may be too long for this account, so
    the account data is fetched again."""

    message: str
    code: str | None = None
    reauth: bool = False
    rest_seconds: float = 0.0
    verdict: bool = False
    content: bool = False
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may be up: read the account back. `memo` is kept for a second call, should the account not show it."""

    message: str
    code: str | None = None
    memo: Memo | None = None


Outcome = Done | More | Again | Wait | Held | Published | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Look:
    """One answered, readable look at the account: everything there that could be this post, oldest first.

    An empty `candidates` means "not there at this moment"; only the caller decides when that has been seen often
    enough. A look that was not answered raises instead."""

    candidates: tuple[Published, ...] = ()
    whole: bool = True
    """False: only one task was asked about, not the account. Another one may hold the post, if somebody else began
    another one."""
    similar: tuple[str, ...] = ()
    """Ids of what is of the same kind, in the time, and differs in its words. Where a network has no guard of its own
    against duplicates it makes "absent" a "cannot tell", unless it belongs to another delivery."""
    vague: tuple[str, ...] = ()
    """Ids of candidates that do not tell all of our words. Where another delivery of the account may have made one, it
    is no more than similar."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The network offers no way to find out. `hint` says where the owner can look."""

    hint: str
