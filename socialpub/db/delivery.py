"""A delivery as the engine uses it: the row, and the engine's state between steps."""

import json
from dataclasses import dataclass, field
from typing import Any

from socialpub.db import states
from socialpub.db.models import DeliveryRow
from socialpub.db.states import COMMITS, READ_BACK, REPEATABLE, CommittingAgain, Phase, Preparing, State


@dataclass(slots=True)
class Progress:
    """The engine's state of a delivery between two steps. The column `memo` has the network's state."""

    phase: Phase = field(default_factory=Preparing)
    tries: int = 0
    """Consecutive failures that allow a retry. Progress resets the number."""
    deaths: int = 0
    """The number of consecutive processes that died during the next step."""
    stopped: bool = False
    """The owner stopped the delivery: further calls are not made, but sent calls are read back."""
    reconnected_at: str | None = None
    """When the account was last connected again. `give_up_after` begins at this instant."""
    again: dict[str, int] = field(default_factory=dict)
    """The number of returns to an earlier step, by cause."""
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By step and status: the number of refusals by a proxy, and the time of the first one."""

    @classmethod
    def from_json(cls, text: str) -> "Progress":
        stored = json.loads(text)
        own = {name: stored[name] for name in cls.__slots__ if name in stored and name != "phase"}
        return cls(states.read_phase(stored), **own)

    def count_refusal(self, step: str, status: str | None, at: str) -> None:
        times, first_at = self.refusals.get(f"{step} {status}", (0, at))
        self.refusals[f"{step} {status}"] = (times + 1, first_at)

    def as_dict(self) -> dict[str, Any]:
        """Return all values that differ from a new delivery."""
        own = {name: value for name in self.__slots__ if name != "phase" and (value := getattr(self, name))}
        return own if self.phase == Preparing() else {**self.phase.as_dict(), **own}


@dataclass(slots=True)
class Delivery:
    """A claimed delivery of one post to one profile."""

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
    """Names and kinds of the steps. None: the delivery has not started."""
    step: int
    memo: dict[str, Any]
    progress: Progress
    committed_at: str | None
    """Set before the first commit is sent, and cleared when the commit definitely did not happen."""
    content_key: str
    scheduled_at: str | None
    """The owner's time. None: the post is published at once."""
    first_endpoint: str | None = None
    """The endpoint of the first step, for a delivery without a plan. None: unknown before the claim."""
    reply_to: str | None = None
    """The first delivery of the post to which this delivery replies. A retry of that post replaces it."""

    @classmethod
    def from_row(cls, row: DeliveryRow) -> "Delivery":
        return cls(
            id=row.id,
            post_id=row.post_id,
            profile_id=row.profile_id,
            provider=row.provider,
            account_id=row.account_id,
            state=State(row.state),
            options=json.loads(row.options),
            due_at=row.due_at,
            run_at=row.run_at,
            started_at=row.started_at,
            held_by=row.owner,
            plan=[(name, kind) for name, kind in json.loads(row.plan)] if row.plan else None,
            step=row.step,
            memo=json.loads(row.memo),
            progress=Progress.from_json(row.progress),
            committed_at=row.committed_at,
            content_key=row.content_key,
            scheduled_at=row.scheduled_at,
            first_endpoint=row.first_endpoint,
            reply_to=row.reply_to,
        )

    @property
    def phase(self) -> Phase:
        return self.progress.phase

    @property
    def step_name(self) -> str:
        """The name of the next step in attempts."""
        if self.phase.reads_back:
            return READ_BACK
        return self.plan[self.step][0] if self.plan else "start"

    @property
    def step_kind(self) -> str:
        return self.plan[self.step][1] if self.plan else "prepare"

    def kind_of(self, step_name: str) -> str:
        """Return the kind of the step with this name, or `READ_BACK`."""
        return READ_BACK if step_name == READ_BACK else dict(self.plan or ()).get(step_name, "prepare")

    @property
    def commit_step(self) -> int:
        """The position of the commit in the plan, or 0 without a plan."""
        return next((index for index, (_, kind) in enumerate(self.plan or ()) if kind in COMMITS), 0)

    @property
    def asks(self) -> bool:
        """Whether the next run only reads from the network."""
        return self.phase.reads_back or self.step_kind == "poll"

    @property
    def commits_next(self) -> bool:
        return not self.phase.reads_back and self.step_kind in COMMITS

    @property
    def is_repeatable(self) -> bool:
        """Whether a repetition of the commit cannot create a second post."""
        return any(kind == REPEATABLE for _, kind in self.plan or ())

    @property
    def repeats(self) -> bool:
        """Whether the next run repeats a call that cannot create a second post."""
        return self.is_repeatable and self.commits_next and isinstance(self.phase, CommittingAgain)

    @property
    def past_commit(self) -> bool:
        """Whether the commit was announced, so the post may be public."""
        return self.committed_at is not None

    @property
    def unknown_calls(self) -> int:
        return self.phase.commits

    @property
    def unknown_since(self) -> str | None:
        """The announcement of the first call that may have published, or the instant of the restored backup."""
        return self.phase.since or self.committed_at
