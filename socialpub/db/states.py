"""The states of posts, deliveries, profiles and artifacts, and the phases of a delivery.

A state says what callers see, and how it is left. A phase is what the engine remembers of a delivery between two steps:
it says what may be public and what the next run does. `publishing/delivery/transitions.py` has the table of all
transitions between phases.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

QUESTIONS = "questions"
"""The scope (of holds) of what only asks: reading back, and polls."""

READ_BACK = "read_back"
"""How attempts show a read-back. It is no step of a plan."""


class PostStatus(StrEnum):
    PENDING = "pending"
    """Accepted and started, or to be started at once. Left when the last delivery settles."""

    SCHEDULED = "scheduled"
    """Waits for its time. Left when the first delivery starts, or by cancel."""

    SETTLED = "settled"
    """Every delivery has an outcome. Final."""

    CANCELED = "canceled"
    """Stopped before any delivery ran. Final."""


class State(StrEnum):
    """A delivery's state inside; `outside` is what the API calls it."""

    QUEUED = "queued"
    """Waits for `run_at`: its time, a retry, a network's wait. Left by a claim or a cancel."""

    RUNNING = "running"
    """A process talks to the network for it. Left by settling, or by another process once that one's lock is free."""

    PUBLISHED = "published"
    """Exactly one post is up. Final; `url` and `providerPostId` may still be filled in."""

    FAILED = "failed"
    """Certain that nothing was posted. Final."""

    UNCONFIRMED = "unconfirmed"
    """It may be public and the network cannot tell. Final; shown as failed, with a message that says so."""

    CANCELED = "canceled"
    """Stopped with its post before it ran. Final."""

    @property
    def outside(self) -> str:
        match self:
            case State.QUEUED | State.RUNNING:
                return "pending"
            case State.UNCONFIRMED:
                return "failed"
            case _:
                return self.value

    @property
    def outcome(self) -> str:
        """The same, but for what may be public: `unknown`. As lists of posts are filtered (contract 1.16)."""
        return "unknown" if self is State.UNCONFIRMED else self.outside

    @property
    def letter(self) -> str:
        """The outcome as a post holds it, one letter per delivery."""
        return OUTCOME_LETTERS[self.outcome]

    @property
    def final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


OUTCOME_LETTERS = {"pending": ".", "published": "p", "failed": "f", "unknown": "u", "canceled": "c"}


class ProfileStatus(StrEnum):
    ACTIVE = "active"
    """Usable."""

    REAUTH_REQUIRED = "reauthRequired"
    """The owner must connect the account again. Left when that happens, or by an import of tokens for it."""

    DISCONNECTED = "disconnected"
    """No longer linked. Final."""


class ArtifactStatus(StrEnum):
    RESERVED = "reserved"
    """An id and a place for bytes. Left by `complete`."""

    VERIFIED = "verified"
    """Examined and usable in posts. Final."""

    REJECTED = "rejected"
    """Examined and refused; its bytes are gone. Final."""


# --- phases ----------------------------------------------------------------------------------------------------------


class PhaseName(StrEnum):
    PREPARING = "preparing"
    COMMITTING = "committing"
    PROCESSING = "processing"
    READING_BACK = "reading_back"
    COMMITTING_AGAIN = "committing_again"
    PREPARING_AGAIN = "preparing_again"
    CONFIRMING = "confirming"
    CLOSING = "closing"
    INHERITED = "inherited"
    CONFIRMING_INHERITED = "confirming_inherited"
    READING_BACK_INHERITED = "reading_back_inherited"
    PROCESSING_INHERITED = "processing_inherited"
    WAITING_FOR_RECONNECT = "waiting_for_reconnect"


class _Absent:
    """The values of fields that a phase does not have."""

    __slots__ = ()
    commits = 0
    why = ""
    since: str | None = None
    dated_since: str | None = None
    earlier: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Phase(_Absent):
    name: ClassVar[PhaseName]
    reads_back: ClassVar[bool] = False
    """The next run searches the account instead of running a step of the plan."""
    may_be_public: ClassVar[bool] = False
    """A call that publishes may have reached the network before the next run."""
    inherited: ClassVar[bool] = False
    """The delivery came with a restored backup: another installation may have published it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of this phase, without the fields that have no value."""
        found = {field.name: value for field in fields(self) if (value := getattr(self, field.name))}
        return {"phase": self.name.value, **found}


# --- before the outcome of a call is unknown -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preparing(Phase):
    """Runs the steps before the commit. Nothing is public."""

    name = PhaseName.PREPARING


@dataclass(frozen=True, slots=True)
class Committing(Phase):
    """Makes the call that publishes, for the first time. The row announces the call before it is sent."""

    name = PhaseName.COMMITTING
    dated_since: str | None = None
    """When the call was announced, on the network's clock. None: that clock was not known."""


@dataclass(frozen=True, slots=True)
class Processing(Phase):
    """The network accepted the call and processes the post. The steps after the commit ask for the result."""

    name = PhaseName.PROCESSING
    may_be_public = True
    commits: int = 0
    since: str | None = None
    dated_since: str | None = None
    message: str | None = None
    """Of a closed delivery, which makes no further call: the message with which it fails."""


# --- a call has an unknown outcome -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnknownOutcome(Phase):
    """What every phase keeps after a call of unknown outcome."""

    may_be_public = True
    commits: int
    """How many calls had an unknown outcome."""
    why: str
    """Why the outcome is unknown."""
    since: str
    """When the first of these calls was announced. The search of the account begins there."""
    dated_since: str | None = None
    """The same instant on the network's clock, if it was known."""


@dataclass(frozen=True, slots=True)
class ReadingBack(UnknownOutcome):
    """The outcome of a call is unknown. Searches the account until `publishing.resend_after` is over."""

    name = PhaseName.READING_BACK
    reads_back = True
    readbacks: int = 0
    """Answered read-backs in this round."""
    read_back_seconds: float = 0.0
    """The length of this round on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class CommittingAgain(UnknownOutcome):
    """The account does not show the post. Makes the second call, after a read-back at most one minute old."""

    name = PhaseName.COMMITTING_AGAIN


@dataclass(frozen=True, slots=True)
class PreparingAgain(UnknownOutcome):
    """The network asked for earlier steps again before it takes the second call."""

    name = PhaseName.PREPARING_AGAIN


@dataclass(frozen=True, slots=True)
class Confirming(UnknownOutcome):
    """Something delayed the second call. Searches the account once more before that call."""

    name = PhaseName.CONFIRMING
    reads_back = True


@dataclass(frozen=True, slots=True)
class Closing(UnknownOutcome):
    """No further call is made. Searches the account for a last round, then the delivery ends."""

    name = PhaseName.CLOSING
    reads_back = True
    message: str = ""
    """The message with which it fails if the account does not show the post."""
    readbacks: int = 0
    read_back_seconds: float = 0.0


# --- another installation may have published it ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inherited(Phase):
    """The delivery came with a backup and is due later. One read-back precedes its first step."""

    name = PhaseName.INHERITED
    may_be_public = True
    inherited = True
    since: str = ""
    """The instant of the backup. The search of the account begins there."""
    earlier: tuple[dict[str, Any], ...] = ()
    """Former contents that the other installation may have published: body, media (ids and alt), options."""


@dataclass(frozen=True, slots=True)
class ConfirmingInherited(Inherited):
    """Searches the account once before the first step of a delivery that came with a backup."""

    name = PhaseName.CONFIRMING_INHERITED
    reads_back = True


@dataclass(frozen=True, slots=True)
class ReadingBackInherited(Phase):
    """The delivery came with a backup and was due before the resume. It is read back, and never sent."""

    name = PhaseName.READING_BACK_INHERITED
    reads_back = True
    may_be_public = True
    inherited = True
    since: str = ""
    earlier: tuple[dict[str, Any], ...] = ()
    why: str = ""
    commits: int = 0
    message: str | None = None
    """The message with which it fails if the account does not show the post. None: that of a restore."""
    readbacks: int = 0
    read_back_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessingInherited(Phase):
    """The network processes a post that another installation may have sent as well. The delivery never goes back."""

    name = PhaseName.PROCESSING_INHERITED
    may_be_public = True
    inherited = True
    since: str = ""
    why: str = ""
    commits: int = 0


# --- a wait ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WaitingForReconnect(Phase):
    """The owner must connect the account again. Then the delivery continues in the phase that it had."""

    name = PhaseName.WAITING_FOR_RECONNECT
    resumes: Phase = Preparing()

    def as_dict(self) -> dict[str, Any]:
        return {"phase": self.name.value, "resumes": self.resumes.as_dict()}


PHASES: dict[str, type[Phase]] = {
    phase.name: phase
    for phase in (
        Preparing, Committing, Processing, ReadingBack, CommittingAgain, PreparingAgain, Confirming, Closing, Inherited,
        ConfirmingInherited, ReadingBackInherited, ProcessingInherited, WaitingForReconnect,
    )
}  # fmt: skip


READING_BACK = ", ".join(f"'{phase.name}'" for phase in PHASES.values() if phase.reads_back)
"""The phases that read back, as SQL compares them with the column `phase`."""


def read_phase(stored: dict[str, Any]) -> Phase:
    """Return the phase that a row stores (`as_dict`)."""
    phase = PHASES[stored.get("phase", PhaseName.PREPARING)]
    values = {field.name: stored[field.name] for field in fields(phase) if field.name in stored}
    if "resumes" in values:
        values["resumes"] = read_phase(values["resumes"])
    if "earlier" in values:
        values["earlier"] = tuple(values["earlier"])
    return phase(**values)
