"""The states of posts, deliveries, profiles and artifacts: what each means and how it is left."""

from enum import StrEnum

QUESTIONS = "questions"
"""The scope (of holds) of what only asks: reading back, and polls."""

READ_BACK = "read_back"
"""As attempts show the looks at an account after an unknown outcome: they are no step of a plan."""


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
