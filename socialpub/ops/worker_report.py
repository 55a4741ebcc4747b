"""What the worker says of itself with every heartbeat: what only its own process can see.

It goes out in the heartbeat's own write. Ages are told as seconds, since somebody may set the clock in between.
"""

import json
from dataclasses import asdict, dataclass

from socialpub.db import appliance_state
from socialpub.db.transaction import Reader, Tx
from socialpub.media import decoder_starts
from socialpub.ops import process_figures
from socialpub.ops.process_figures import ProcessFigures
from socialpub.runtime import Runtime


@dataclass(slots=True)
class HousekeepingRound:
    """When housekeeping last came round in this process, on the monotonic clock."""

    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerReport:
    figures: ProcessFigures
    housekeeping_seconds: float = 0.0
    """Since housekeeping last came round."""
    decoder_failure: str | None = None
    """Why no child process can be started in which media is decoded."""
    decoder_lacks: tuple[str, ...] | None = None
    """What the kernel lacks to confine that process. None: no such process has answered yet."""


def beat(rt: Runtime, tx: Tx) -> None:
    """Note that a worker lives and can write. Readiness looks at the age of this."""
    appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp)
    ended_at, now = rt.memory(HousekeepingRound).ended_at, rt.clock.monotonic()
    report = WorkerReport(
        process_figures.read(),
        0.0 if ended_at is None else round(now - ended_at),
        decoder_starts.failure(),
        decoder_starts.lacks(),
    )
    appliance_state.put(tx, appliance_state.WORKER, json.dumps(asdict(report)))


def note_round(rt: Runtime) -> None:
    """Housekeeping has come round, or begins."""
    rt.memory(HousekeepingRound).ended_at = rt.clock.monotonic()


def read(reader: Reader) -> WorkerReport | None:
    """The last one; None when none was ever made. It is as old as the heartbeat."""
    written = appliance_state.get(reader, appliance_state.WORKER)
    if written is None:
        return None
    values = json.loads(written)
    return WorkerReport(**values | {"figures": ProcessFigures(**values["figures"])})
