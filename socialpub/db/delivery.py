"""One delivery as the engine works with it: the row, and what the engine remembers between steps."""

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, ClassVar

from socialpub.db.states import READ_BACK, State


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
