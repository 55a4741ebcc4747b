"""When housekeeping last ran, and what the settings of `[retention]` have removed next."""

from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.core import durations
from socialpub.db import appliance_state
from socialpub.db.transaction import Tx
from socialpub.ops.finding import Finding, ok
from socialpub.publishing import retention
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class HousekeepingReport:
    ran_at: str | None
    """When it last came to its end, in whichever process."""
    kept: dict[str, str]
    """What is not kept for ever, and how long it is, but for usage, which is a few rows a day."""
    due_posts: int
    """How many posts the next rounds remove."""

    @property
    def sentence(self) -> str:
        """What is removed by age, and how much of it is due."""
        if not self.kept:
            return "Posts and their history are kept for ever."
        parts = [f"{name} {age}" for name, age in self.kept.items()]
        said = f"Kept are {', '.join(parts)} (retention)"
        if "posts" not in self.kept:
            return f"{said}; posts for ever."
        due = {0: "no post is due.", 1: "1 post is removed next."}
        return f"{said}; {due.get(self.due_posts, f'{self.due_posts:,} posts are removed next.')}"


def note(rt: Runtime) -> None:
    """Everything that is due hourly has run."""
    rt.write(_note)


def _note(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.HOUSEKEPT_AT, tx.stamp)


def read(rt: Runtime) -> HousekeepingReport:
    """What there is to say of it. Counts posts, which may take a moment: not on the event loop."""
    kept = rt.settings.retention.model_dump(exclude={"usage"})
    return HousekeepingReport(
        appliance_state.get(rt.reader, appliance_state.HOUSEKEPT_AT),
        {name: durations.write(age) for name, age in kept.items() if age is not None},
        retention.due_posts(rt),
    )


def check(rt: Runtime) -> Iterator[Finding]:
    """What the doctor says of it."""
    report = read(rt)
    ran = "has not run here yet" if report.ran_at is None else f"last ran at {report.ran_at}"
    yield ok("housekeeping", f"Housekeeping {ran}. {report.sentence}")
