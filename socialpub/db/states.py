"""The states of posts, deliveries, profiles and artifacts, and the phases of a delivery.

Callers see states. The engine stores the phase of a delivery between two steps: what may be public, and what the next
run does. `publishing/delivery/transitions.py` has the table of all transitions.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

QUESTIONS = "questions"
"""The scope of holds for read-backs and polls."""

READ_BACK = "read_back"
"""The step name of read-backs in attempts. It is not a step of a plan."""

REPEATABLE = "repeatable"
"""The kind of a commit whose repetition cannot create a second post."""

COMMITS = ("commit", REPEATABLE)
"""The kinds of the step that makes a post public."""


class PostStatus(StrEnum):
    PENDING = "pending"
    """The post is accepted and has started or starts at once. This status ends when the last delivery settles."""

    SCHEDULED = "scheduled"
    """The post waits for its time. This status ends when the first delivery starts or the post is canceled."""

    SETTLED = "settled"
    """Every delivery has an outcome. Final."""

    CANCELED = "canceled"
    """The post was canceled before any delivery ran. Final."""


class State(StrEnum):
    """A delivery's internal state; `api_status` is its status in the API."""

    QUEUED = "queued"
    """The delivery waits for `run_at`: its time, a retry, or a wait of a network. A claim or a cancel ends this."""

    RUNNING = "running"
    """A process is running a step. This state ends when the step settles or the process is found dead."""

    PUBLISHED = "published"
    """Exactly one post is public. Final. `url` and `providerPostId` may follow later."""

    FAILED = "failed"
    """The post was definitely not published. Final."""

    UNCONFIRMED = "unconfirmed"
    """The post may be public, and the network cannot confirm the post. Final. In the API: `failed` with a message."""

    CANCELED = "canceled"
    """The post was canceled before the delivery ran. Final."""

    @property
    def api_status(self) -> str:
        match self:
            case State.QUEUED | State.RUNNING:
                return "pending"
            case State.UNCONFIRMED:
                return "failed"
            case _:
                return self.value

    @property
    def outcome(self) -> str:
        """The status for filters of posts, with `unknown` for a post that may be public (contract 1.16)."""
        return "unknown" if self is State.UNCONFIRMED else self.api_status

    @property
    def letter(self) -> str:
        """The outcome in the column `post.outcomes`, which has one letter per delivery."""
        return OUTCOME_LETTERS[self.outcome]

    @property
    def final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


OUTCOME_LETTERS = {"pending": ".", "published": "p", "failed": "f", "unknown": "u", "canceled": "c"}


class ProfileStatus(StrEnum):
    ACTIVE = "active"
    """The account can publish."""

    REAUTH_REQUIRED = "reauthRequired"
    """The owner must connect the account again, or import its tokens."""

    DISCONNECTED = "disconnected"
    """The account is no longer connected. Final."""


class ArtifactStatus(StrEnum):
    RESERVED = "reserved"
    """The artifact has an id and waits for bytes. This status ends with `complete`."""

    VERIFIED = "verified"
    """The file is valid, and posts can use it. Final."""

    REJECTED = "rejected"
    """The file is not valid and was removed. Final."""


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
    WAITING_FOR_POST = "waiting_for_post"
    WAITING_FOR_APPROVAL = "waiting_for_approval"


class _Absent:
    """Default values of fields that a phase does not have."""

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
    """A call that publishes may have reached the network."""
    inherited: ClassVar[bool] = False
    """The delivery comes from a restored backup, so another installation may have published the post."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of this phase, without empty fields."""
        found = {field.name: value for field in fields(self) if (value := getattr(self, field.name))}
        return {"phase": self.name.value, **found}


# --- before the outcome of a call is unknown -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preparing(Phase):
    """The steps before the commit are running. Nothing is public."""

    name = PhaseName.PREPARING


@dataclass(frozen=True, slots=True)
class Committing(Phase):
    """The first call that publishes is next. The row announces the call before it is sent."""

    name = PhaseName.COMMITTING
    dated_since: str | None = None
    """When the call was announced, on the network's clock. None: that clock was unknown."""


@dataclass(frozen=True, slots=True)
class Processing(Phase):
    """The network accepted the call and is processing the post. The steps after the commit poll the result."""

    name = PhaseName.PROCESSING
    may_be_public = True
    commits: int = 0
    since: str | None = None
    dated_since: str | None = None
    message: str | None = None
    """The error message of a closed delivery, which does not make further calls."""


# --- a call has an unknown outcome -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnknownOutcome(Phase):
    """A call has an unknown outcome."""

    may_be_public = True
    commits: int
    """The number of calls with an unknown outcome."""
    why: str
    """The reason why the outcome is unknown."""
    since: str
    """When the first of these calls was announced. Read-backs search the account from this instant on."""
    dated_since: str | None = None
    """The same instant on the network's clock. None: that clock was unknown."""


@dataclass(frozen=True, slots=True)
class ReadingBack(UnknownOutcome):
    """The outcome of a call is unknown. Read-backs follow until `publishing.resend_after` has passed."""

    name = PhaseName.READING_BACK
    reads_back = True
    readbacks: int = 0
    """Read-backs of this round that the network answered."""
    read_back_seconds: float = 0.0
    """The length of this round on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class CommittingAgain(UnknownOutcome):
    """The call is sent again: after a read-back that is at most one minute old, or at once if it is repeatable."""

    name = PhaseName.COMMITTING_AGAIN


@dataclass(frozen=True, slots=True)
class PreparingAgain(UnknownOutcome):
    """The network requires earlier steps again before the second call."""

    name = PhaseName.PREPARING_AGAIN


@dataclass(frozen=True, slots=True)
class Confirming(UnknownOutcome):
    """Something delayed the second call. One read-back precedes that call."""

    name = PhaseName.CONFIRMING
    reads_back = True


@dataclass(frozen=True, slots=True)
class Closing(UnknownOutcome):
    """Further calls are not made. After a last round of read-backs, the delivery ends."""

    name = PhaseName.CLOSING
    reads_back = True
    message: str = ""
    """The error message if the account does not show the post."""
    readbacks: int = 0
    read_back_seconds: float = 0.0


# --- another installation may have published the post ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inherited(Phase):
    """The delivery comes from a backup and is due later. One read-back precedes its first step."""

    name = PhaseName.INHERITED
    may_be_public = True
    inherited = True
    since: str = ""
    """The instant of the backup. Read-backs search the account from this instant on."""
    earlier: tuple[dict[str, Any], ...] = ()
    """Earlier versions that the other installation may have published: body, media (ids and alt), options."""


@dataclass(frozen=True, slots=True)
class ConfirmingInherited(Inherited):
    """The read-back before the first step of a delivery that comes from a backup is next."""

    name = PhaseName.CONFIRMING_INHERITED
    reads_back = True


@dataclass(frozen=True, slots=True)
class ReadingBackInherited(Phase):
    """The delivery comes from a backup and was due before the resume. The delivery is read back and never sent."""

    name = PhaseName.READING_BACK_INHERITED
    reads_back = True
    may_be_public = True
    inherited = True
    since: str = ""
    earlier: tuple[dict[str, Any], ...] = ()
    why: str = ""
    commits: int = 0
    message: str | None = None
    """The error message if the account does not show the post. None: the message of a restore."""
    readbacks: int = 0
    read_back_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessingInherited(Phase):
    """The network is processing a post that another installation may have sent. The delivery does not repeat steps."""

    name = PhaseName.PROCESSING_INHERITED
    may_be_public = True
    inherited = True
    since: str = ""
    why: str = ""
    commits: int = 0


# --- a wait ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting(Phase):
    """The delivery waits, and continues in the phase `resumes`."""

    resumes: Phase = Preparing()

    def as_dict(self) -> dict[str, Any]:
        return {**Phase.as_dict(self), "resumes": self.resumes.as_dict()}


@dataclass(frozen=True, slots=True)
class WaitingForReconnect(Waiting):
    """The owner must connect the account again. Then the delivery continues in its previous phase."""

    name = PhaseName.WAITING_FOR_RECONNECT


@dataclass(frozen=True, slots=True)
class WaitingForPost(Waiting):
    """The post to which this post replies is not published yet. Then the delivery continues in its previous phase."""

    name = PhaseName.WAITING_FOR_POST
    post_id: str = ""


@dataclass(frozen=True, slots=True)
class WaitingForApproval(Waiting):
    """The owner must approve the post. Then the delivery continues in its previous phase."""

    name = PhaseName.WAITING_FOR_APPROVAL
    required_at: str = ""
    key_name: str = ""
    """The name of the API key that created or changed the post."""


PHASES: dict[str, type[Phase]] = {
    phase.name: phase
    for phase in (
        Preparing, Committing, Processing, ReadingBack, CommittingAgain, PreparingAgain, Confirming, Closing, Inherited,
        ConfirmingInherited, ReadingBackInherited, ProcessingInherited, WaitingForReconnect,
        WaitingForPost, WaitingForApproval,
    )
}  # fmt: skip


READING_BACK = ", ".join(f"'{phase.name}'" for phase in PHASES.values() if phase.reads_back)
"""The phases that read back, as an SQL list."""


def read_phase(stored: dict[str, Any]) -> Phase:
    """Return the phase that a row stores (`as_dict`)."""
    phase = PHASES[stored.get("phase", PhaseName.PREPARING)]
    values = {field.name: stored[field.name] for field in fields(phase) if field.name in stored}
    if "resumes" in values:
        values["resumes"] = read_phase(values["resumes"])
    if "earlier" in values:
        values["earlier"] = tuple(values["earlier"])
    return phase(**values)
