"""A wall clock that is set: our own waits move with it. The owner's times, and lateness, are those of the wall clock.

The wall clock and the monotonic one part when somebody sets the wall clock, and every write looks at both before it
begins. The first one to notice moves the waits, whatever process it is in; what it noticed stands in the database. A
machine that was switched off meanwhile is recognised by what it wrote last: a heartbeat from the future.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from socialpub.core import logging
from socialpub.core.clock import Clock, after, parse, stamp
from socialpub.db import appliance_state
from socialpub.db.connection import SHIFTED, Reader, Tx, shift_by
from socialpub.db.tables import artifact_rows, delivery_rows

NOTICED_SECONDS = 30.0
"""Less than this is an ordinary correction, or a leap second."""
REMEMBERED = 50
"""Number of jumps that are kept."""
SHOWN = timedelta(days=1)
"""How long readiness and the doctor speak of a jump."""

WAITS = {
    "not_before": ("until", "outlasts"),
    "own_wait": ("since", "until"),
    "hold": ("since", "probe_at"),
    "idempotency": ("created_at",),
    "profile": ("disconnected_at", "renewed_at", "warned_at"),
    "consent": ("expires_at", "taken_at"),
    "told_cause": ("since", "told_at", "ended_at"),
    "notification_service": ("failing_since", "next_at"),
}
"""Columns that hold a wait or an age of ours, beside those of `delivery`."""

log = logging.get_logger("socialpub.clock")


@dataclass(frozen=True, slots=True)
class ClockState:
    """What is known of the wall clock. `ahead`: how many seconds it is ahead of the monotonic clock of this `boot`."""

    boot: str
    ahead: float
    moved: float = 0.0
    """All jumps so far: subtracted from the wall clock they leave a clock that goes on evenly."""
    jumped_at: str | None = None
    """When the last jump was noticed, on the clock that it left."""
    jumped_by: float = 0.0
    """In seconds; below zero it went back."""
    jumps: tuple[tuple[str, float], ...] = ()
    """The last of them, with when each was noticed: in the order in which they were."""
    drift: float = 0.0
    """By how many seconds it was set in this run of the machine. Below zero: it is behind what former runs wrote."""
    booted_at: str | None = None
    """When this run of the machine first wrote something, on the clock that the last jump left. None: not known."""


class ClockWatch:
    """Looks at both clocks for one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: float | None = None

    @property
    def was_set(self) -> bool:
        """Whether the next write will find the wall clock set, or has not looked yet."""
        return self._differs(_ahead(self._clock, self._clock.now()))

    def look(self, tx: Tx) -> None:
        """Before a write begins: move the waits when the wall clock was set since the last one of any process."""
        ahead = _ahead(self._clock, tx.now)
        if not self._differs(ahead):
            return
        tx.after_commit(self._remember, ahead)  # what is not on the disk was not moved
        known = load_state(tx)
        jump = _jump_since(tx, known, self._clock.boot, ahead)
        same_boot = known is not None and known.boot == self._clock.boot
        known = known or ClockState(self._clock.boot, ahead)
        drift, booted_at = (known.drift, known.booted_at) if same_boot else (0.0, tx.stamp)
        seen = replace(known, boot=self._clock.boot, ahead=ahead, drift=drift, booted_at=booted_at)
        if abs(jump) >= NOTICED_SECONDS:
            # What was accepted in a former run of the machine is never younger than the clock says.
            of_former_runs = min(drift + jump, 0.0) - min(drift, 0.0)
            _move_waits(tx, jump, of_former_runs, seen.booted_at or "")
            jumps = (*known.jumps, (tx.stamp, jump))[-REMEMBERED:]
            seen = replace(seen, jumped_at=tx.stamp, jumped_by=jump, jumps=jumps)
            seen = replace(seen, moved=known.moved + jump, drift=drift + jump)
            if same_boot and seen.booted_at:
                seen = replace(seen, booted_at=after(seen.booted_at, jump))
        appliance_state.put(tx, appliance_state.CLOCK, json.dumps(asdict(seen)))

    def _differs(self, ahead: float) -> bool:
        return self._known is None or abs(ahead - self._known) >= NOTICED_SECONDS

    def _remember(self, ahead: float) -> None:
        self._known = ahead


def load_state(store: Reader) -> ClockState | None:
    """What was last written down; None in a new database."""
    written = appliance_state.get(store, appliance_state.CLOCK)
    return None if written is None else ClockState(**json.loads(written))


def total_shift(store: Reader, clock: Clock) -> timedelta:
    """By how much the wall clock has been set so far: what is left of it without that goes on evenly."""
    known = load_state(store)
    if known is None:
        return timedelta()
    unnoticed = _ahead(clock, clock.now()) - known.ahead if known.boot == clock.boot else 0.0
    return timedelta(seconds=known.moved + (unnoticed if abs(unnoticed) >= NOTICED_SECONDS else 0.0))


def age_seconds(store: Reader, now: datetime, written_at: str) -> float:
    """How long ago something was written down, though the clock may have been set since."""
    known, age = load_state(store), (now - parse(written_at)).total_seconds()
    if known is None or known.jumped_at is None or written_at > after(known.jumped_at, min(-known.jumped_by, 0.0)):
        return age
    return age - known.jumped_by


def written_before(store: Reader, now: datetime, age: timedelta) -> str:
    """What bears a stamp up to this one is at least as old as that, however the clock was set since it was written: a
    wrong date for an hour makes nothing a year old. Some of it may be older still."""
    known = load_state(store)
    before = safe = stamp(now - age)
    for at, seconds in reversed(known.jumps if known else ()):
        if at <= before:  # longer ago than that, and so is all that was written before it
            break
        before = after(before, -seconds)  # the same instant on the clock as it was until then
        safe = min(safe, before)
    return safe


def recent_jump(store: Reader, now: datetime) -> ClockState | None:
    """The last jump, while it is worth speaking of. The clock of a restored installation's original is not."""
    known = load_state(store)
    if known is None or known.jumped_at is None or abs(now - parse(known.jumped_at)) > SHOWN:
        return None
    return known if known.jumped_at > (appliance_state.get(store, appliance_state.ORIGINAL_UNTIL) or "") else None


def _jump_since(tx: Tx, known: ClockState | None, boot: str, ahead: float) -> float:
    """By how many seconds the wall clock jumped since the last write of any process."""
    if known is not None and known.boot == boot and boot:
        return ahead - known.ahead
    # Another run of the machine: only a clock that went back shows, by a worker that reported later than now.
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    return 0.0 if reported is None else min((tx.now - parse(reported)).total_seconds(), 0.0)


def forward_jumps(store: Reader, instant: str) -> list[tuple[str, float]]:
    """The jumps forward since this instant: when each was noticed, and its seconds."""
    known = load_state(store)
    return [(at, seconds) for at, seconds in (known.jumps if known else ()) if seconds > 0 and at >= instant]


def _move_waits(tx: Tx, seconds: float, of_former_runs: float, booted_at: str) -> None:
    delivery_rows.move_waits(tx, seconds, of_former_runs, booted_at)
    for table, columns in WAITS.items():
        moved_columns = ", ".join(f"{column} = {SHIFTED.format(column)}" for column in columns)
        tx.execute(f"UPDATE {table} SET {moved_columns}", (shift_by(seconds),) * len(columns))
    artifact_rows.shift_timestamps(tx, seconds)
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    if reported is not None:
        appliance_state.put(tx, appliance_state.HEARTBEAT, after(reported, seconds))
    direction = "forward" if seconds > 0 else "back"
    tx.after_commit(
        log.warning,
        f"the clock was set {direction} by {abs(seconds):.0f} seconds, to {tx.stamp}; what socialpub waits for was "
        "moved along",
    )


def _ahead(clock: Clock, now: datetime) -> float:
    return now.timestamp() - clock.monotonic()
