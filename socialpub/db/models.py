"""The states, each with what it means and how it is left, and the shapes of the rows that the domain works with."""

import json
import sqlite3
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

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


@dataclass(slots=True)
class Profile:
    id: str
    provider: str
    account_id: str
    name: str
    status: ProfileStatus
    username: str | None
    scopes: frozenset[str]
    facts: dict[str, Any]
    options: dict[str, Any]
    access_token: bytes | None = field(repr=False)
    refresh_token: bytes | None = field(repr=False)
    access_expires_at: str | None = None
    refresh_expires_at: str | None = None
    reason: str | None = None
    account_name: str | None = None
    """As the network names the account; None: not known. The label follows it until the owner changes the label."""

    COLUMNS: ClassVar[str] = (
        "id, provider, account_id, name, status, username, scopes, facts, options, access_token, refresh_token, "
        "access_expires_at, refresh_expires_at, reason, account_name"
    )

    @classmethod
    def of(cls, row: sqlite3.Row) -> "Profile":
        return cls(
            row["id"],
            row["provider"],
            row["account_id"],
            row["name"],
            ProfileStatus(row["status"]),
            row["username"],
            frozenset(row["scopes"].split()),
            json.loads(row["facts"]),
            json.loads(row["options"]),
            row["access_token"],
            row["refresh_token"],
            row["access_expires_at"],
            row["refresh_expires_at"],
            row["reason"],
            row["account_name"],
        )


@dataclass(slots=True)
class Progress:
    """What the engine itself remembers of a delivery between its steps; `memo` is the network's."""

    tries: int = 0
    """Failures in a row that a retry may overcome; reset by anything that goes forward."""
    commits: int = 0
    """How often the commit was sent with an outcome that stayed unknown."""
    reading_back: bool = False
    confirming: bool = False
    """Reading back is one look that must precede the next call."""
    look_first: bool = False
    """Another installation may have published it since `since`: one read-back precedes the first step."""
    earlier: list[dict[str, Any]] = field(default_factory=list)
    """Contents of this delivery that another installation may have published: body, media (ids and alt), options."""
    looks: int = 0
    """Answered looks at the account in this round."""
    looked_seconds: float = 0.0
    """How long this round of looks has lasted, on the monotonic clock."""
    closing: str | None = None
    """No further call is made: why, as the message with which it fails when the account does not show the post."""
    unknown: str | None = None
    """Why the outcome is not known."""
    since: str | None = None
    """When the first commit of unknown outcome was announced: what is read back begins there."""
    dated_since: str | None = None
    """The same moment on the network's clock, where that was known."""
    restored: bool = False
    """It was due while this copy was not in charge: the original may have sent it, and this one never does."""
    stopped: bool = False
    """The operator wants no further call made; what was sent is still read back."""
    waits_for_owner: bool = False
    """Until the account is connected again; `run_at` is when that is too late."""
    reconnected_at: str | None = None
    """When the account that it waited for was connected again: `give_up_after` counts from then."""
    deaths: int = 0
    """How many processes in a row have died while they ran its next step."""
    again: dict[str, int] = field(default_factory=dict)
    """How often the delivery went back to an earlier step, per reason."""

    def as_dict(self) -> dict[str, Any]:
        """What is not as at the beginning."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


@dataclass(slots=True)
class Delivery:
    """One post on its way to one profile, as claimed."""

    id: str
    post_id: str
    profile_id: str
    provider: str
    account_id: str
    state: State
    options: dict[str, Any]
    due_at: str
    run_at: str
    started_at: str | None
    held_by: str | None
    plan: list[tuple[str, str]] | None
    """Names and kinds of the steps; None until the first start."""
    step: int
    memo: dict[str, Any]
    progress: Progress
    committed_at: str | None
    """Set before the first commit is sent, cleared when it certainly did not happen."""
    content_key: str
    scheduled_at: str | None
    """The time that the owner chose; None for a post that is published at once."""
    first_endpoint: str | None = None
    """What the first step calls, as long as there is no plan. None: not known before the claim."""

    COLUMNS: ClassVar[str] = (
        "id, post_id, profile_id, provider, account_id, state, options, due_at, run_at, started_at, owner, plan, step, "
        "memo, progress, committed_at, content_key, scheduled_at, first_endpoint"
    )

    @classmethod
    def of(cls, row: sqlite3.Row) -> "Delivery":
        plan = json.loads(row["plan"]) if row["plan"] else None
        return cls(
            row["id"],
            row["post_id"],
            row["profile_id"],
            row["provider"],
            row["account_id"],
            State(row["state"]),
            json.loads(row["options"]),
            row["due_at"],
            row["run_at"],
            row["started_at"],
            row["owner"],
            None if plan is None else [(name, kind) for name, kind in plan],
            row["step"],
            json.loads(row["memo"]),
            Progress(**json.loads(row["progress"])),
            row["committed_at"],
            row["content_key"],
            row["scheduled_at"],
            row["first_endpoint"],
        )

    @property
    def step_name(self) -> str:
        """The step that runs next, as attempts show it."""
        if self.progress.reading_back:
            return READ_BACK
        return self.plan[self.step][0] if self.plan else "start"

    @property
    def step_kind(self) -> str:
        return self.plan[self.step][1] if self.plan else "prepare"

    def kind_of(self, step_name: str) -> str:
        """What running the step of this name twice would do; reading back is no step of a plan."""
        return READ_BACK if step_name == READ_BACK else dict(self.plan or ()).get(step_name, "prepare")

    @property
    def commit_step(self) -> int:
        """Where in the plan the commit stands; 0 when there is no plan yet."""
        kinds = [kind for _, kind in self.plan or ()]
        return kinds.index("commit") if "commit" in kinds else 0

    @property
    def past_commit_step(self) -> bool:
        """Whether the step that runs next comes after the commit."""
        return self.plan is not None and not self.progress.reading_back and self.step > self.commit_step

    @property
    def asks(self) -> bool:
        """Whether what runs next only asks a question."""
        return self.progress.reading_back or self.step_kind == "poll"

    @property
    def commits_next(self) -> bool:
        return not self.progress.reading_back and self.step_kind == "commit"

    @property
    def past_commit(self) -> bool:
        """Whether something may be public already: the commit was announced, or lies behind."""
        return self.committed_at is not None

    @property
    def may_be_public(self) -> bool:
        """Whether a post may be up: the commit was sent, not only announced, or another one may have sent it."""
        progress = self.progress
        return progress.commits > 0 or progress.look_first or (self.past_commit and not self.commits_next)
