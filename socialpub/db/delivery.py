"""One delivery as the engine works with it: the row, and what the engine remembers between steps."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

from socialpub.db import states
from socialpub.db.connection import Row
from socialpub.db.states import READ_BACK, Phase, Preparing, State, WaitingForReconnect


@dataclass(slots=True)
class Progress:
    """What the engine itself remembers of a delivery between its steps; `memo` is the network's."""

    phase: Phase = field(default_factory=Preparing)
    tries: int = 0
    """Failures in a row that a retry may overcome; reset by anything that goes forward."""
    deaths: int = 0
    """How many processes in a row have died while they ran its next step."""
    stopped: bool = False
    """The operator's order to make no further call. What was sent is still read back."""
    reconnected_at: str | None = None
    """When the account was connected again, after a wait for that: `give_up_after` counts from then."""
    again: dict[str, int] = field(default_factory=dict)
    """How often the delivery went back to an earlier step, per reason."""

    @classmethod
    def from_json(cls, text: str) -> "Progress":
        stored = json.loads(text)
        own = {name: stored[name] for name in cls.__slots__ if name in stored and name != "phase"}
        return cls(states.read_phase(stored), **own)

    def as_dict(self) -> dict[str, Any]:
        """Return everything that differs from a new delivery."""
        own = {name: value for name in self.__slots__ if name != "phase" and (value := getattr(self, name))}
        return own if self.phase == Preparing() else {**self.phase.as_dict(), **own}


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
    def from_row(cls, row: Row) -> "Delivery":
        delivery = cls(*(row[name] for name in cls.COLUMNS.split(", ")))
        delivery.state = State(row.state)
        delivery.options, delivery.memo = json.loads(row.options), json.loads(row.memo)
        delivery.plan = [(name, kind) for name, kind in json.loads(row.plan)] if row.plan else None
        delivery.progress = Progress.from_json(row.progress)
        return delivery

    @property
    def phase(self) -> Phase:
        """The phase of the next run: of a delivery that waits for a reconnection, the phase that it continues in."""
        phase = self.progress.phase
        return phase.resumes if isinstance(phase, WaitingForReconnect) else phase

    @property
    def waits_for_reconnect(self) -> bool:
        return isinstance(self.progress.phase, WaitingForReconnect)

    @property
    def step_name(self) -> str:
        """The step that runs next, as attempts show it."""
        if self.phase.reads_back:
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
        """The position of the commit in the plan; 0 when there is no plan yet."""
        kinds = [kind for _, kind in self.plan or ()]
        return kinds.index("commit") if "commit" in kinds else 0

    @property
    def asks(self) -> bool:
        """Whether the next run only asks a question."""
        return self.phase.reads_back or self.step_kind == "poll"

    @property
    def commits_next(self) -> bool:
        return not self.phase.reads_back and self.step_kind == "commit"

    @property
    def past_commit(self) -> bool:
        """Whether the commit was announced: something may be public already."""
        return self.committed_at is not None

    @property
    def unknown_calls(self) -> int:
        """How many calls that publish had an unknown outcome."""
        return self.phase.commits

    @property
    def unknown_since(self) -> str | None:
        """When the first call that may have published was announced, or the backup of another installation was made."""
        return self.phase.since or self.committed_at
