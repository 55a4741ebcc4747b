"""The states of posts, deliveries, profiles and artifacts, and the phases of a delivery.

Callers see states. The engine stores the phase of a delivery between two steps: what may be public, and what the next
run does. `publishing/delivery/transitions.py` has the table of all transitions.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

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


@dataclass(frozen=True, slots=True)
class Phase:
    """What may be public. A field that a phase does not name has its default value in that phase."""

    name: ClassVar[PhaseName]
    reads_back: ClassVar[bool] = False
    """The next run searches the account instead of running a step of the plan."""
    may_be_public: ClassVar[bool] = False
    """A call that publishes may have reached the network."""
    keeps: ClassVar[tuple[str, ...]] = ()
    """The fields that this phase takes over from the phase before it."""

    commits: int = 0
    """The number of calls with an unknown outcome."""
    why: str = ""
    """The reason why the outcome is unknown."""
    since: str | None = None
    """The earliest instant from which a call may exist. Read-backs search the account from this instant on."""
    dated_since: str | None = None
    """When the first call was announced, on the network's clock. None: that clock was unknown."""
    contents: tuple[dict[str, Any], ...] = ()
    """Earlier versions that another installation may have published: body, media (ids and alt), options."""
    restored: bool = False
    """The delivery comes from a restored backup, so another installation may have published the post."""
    then: PhaseName = PhaseName.COMMITTING_AGAIN
    """What follows `confirming` if the account does not show the post."""
    message: str | None = None
    """The error message of a delivery that makes no further calls, if the account does not show the post."""
    readbacks: int = 0
    """Read-backs of this round that the network answered."""
    read_back_seconds: float = 0.0
    """The length of this round on the monotonic clock."""

    @property
    def is_uncalled(self) -> bool:
        """Whether only another installation may have published the post: no call was made here."""
        return self.name is PhaseName.CONFIRMING and self.then is PhaseName.PREPARING

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of this phase, without default values."""
        stored = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}
        return {"phase": self.name.value, **stored}


_OF_CALLS = ("commits", "why", "since", "dated_since")


class Preparing(Phase):
    """The steps before the commit are running. Nothing is public."""

    name = PhaseName.PREPARING


class Committing(Phase):
    """The first call that publishes is next. The row announces the call before it is sent."""

    name = PhaseName.COMMITTING


class Processing(Phase):
    """The network accepted the call and is processing the post. With a message, nothing is started again."""

    name = PhaseName.PROCESSING
    may_be_public = True
    keeps = ("commits", "since", "dated_since", "message", "restored")


class ReadingBack(Phase):
    """The outcome of a call is unknown. Read-backs follow until `publishing.resend_after` has passed."""

    name = PhaseName.READING_BACK
    may_be_public = True
    keeps = _OF_CALLS
    reads_back = True


class CommittingAgain(Phase):
    """The call is sent again: after a read-back that is at most one minute old, or at once if it is repeatable."""

    name = PhaseName.COMMITTING_AGAIN
    may_be_public = True
    keeps = _OF_CALLS


class PreparingAgain(Phase):
    """The network requires earlier steps again before the second call."""

    name = PhaseName.PREPARING_AGAIN
    may_be_public = True
    keeps = _OF_CALLS


class Confirming(Phase):
    """One read-back precedes the next call: the second call was delayed, or the delivery comes from a backup."""

    name = PhaseName.CONFIRMING
    may_be_public = True
    keeps = (*_OF_CALLS, "contents", "restored")
    reads_back = True


class Closing(Phase):
    """Further calls are not made. After a last round of read-backs, the delivery ends."""

    name = PhaseName.CLOSING
    may_be_public = True
    keeps = (*_OF_CALLS, "contents", "restored", "message")
    reads_back = True


PHASES: dict[str, type[Phase]] = {
    phase.name: phase
    for phase in (
        Preparing, Committing, Processing, ReadingBack, CommittingAgain, PreparingAgain, Confirming, Closing,
    )
}  # fmt: skip


READING_BACK = ", ".join(f"'{phase.name}'" for phase in PHASES.values() if phase.reads_back)
"""The phases that read back, as an SQL list."""


def read_phase(stored: dict[str, Any]) -> Phase:
    """Return the phase that a row stores (`as_dict`)."""
    phase = PHASES[stored.get("phase", PhaseName.PREPARING)]
    values = {field.name: stored[field.name] for field in fields(phase) if field.name in stored}
    if "contents" in values:
        values["contents"] = tuple(values["contents"])
    if "then" in values:
        values["then"] = PhaseName(values["then"])
    return phase(**values)
