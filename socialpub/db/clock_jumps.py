"""Shifts stored waits when the wall clock is set. The owner's times, and lateness, follow the wall clock.

Before each write, the wall clock and the monotonic clock are compared. The first write of any process that detects a
jump shifts the waits and stores the jump. After a restart of the machine, only a heartbeat from the future shows a
jump.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from socialpub.core import logging
from socialpub.core.clock import Clock, after, parse, stamp
from socialpub.db import appliance_state
from socialpub.db.connection import Database, shifted
from socialpub.db.models import (
    AlertRow,
    ConsentRow,
    IdempotencyRow,
    KeyUseRow,
    NotificationServiceRow,
    ProfileRow,
    StoredWaitRow,
    WebhookRow,
)
from socialpub.db.tables import artifact_rows, delivery_rows

NOTICED_SECONDS = 30.0
"""A smaller difference is an ordinary correction or a leap second."""
REMEMBERED = 50
"""The number of stored jumps."""
SHOWN = timedelta(days=1)
"""How long readiness and `doctor` report a jump."""

WAITS = (
    (StoredWaitRow.since, StoredWaitRow.until),
    (IdempotencyRow.created_at,),
    (KeyUseRow.accepted_at,),
    (ProfileRow.disconnected_at, ProfileRow.renewed_at),
    (ConsentRow.expires_at, ConsentRow.taken_at),
    (AlertRow.since, AlertRow.sent_at, AlertRow.ended_at),
    (NotificationServiceRow.failing_since, NotificationServiceRow.next_at),
    (WebhookRow.failing_since, WebhookRow.next_at),
)
"""Columns with waits and ages, except those of `delivery` and `artifact`."""

log = logging.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClockState:
    """The stored state of the wall clock. `ahead`: its lead over the monotonic clock of this `boot` in seconds."""

    boot: str
    ahead: float
    moved: float = 0.0
    """The sum of all jumps in seconds."""
    jumped_at: str | None = None
    """When the last jump was detected, on the clock after the jump."""
    jumped_by: float = 0.0
    """The size of the last jump in seconds. Negative: the clock went back."""
    jumps: tuple[tuple[str, float], ...] = ()
    """The last jumps, oldest first: the instant of the detection and the seconds."""
    drift: float = 0.0
    """The sum of the jumps of this boot. Negative: the clock is behind the stamps of earlier boots."""
    booted_at: str | None = None
    """The first write of this boot, on the clock after the last jump. None: unknown."""


class ClockWatch:
    """Compares both clocks for one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: float | None = None

    @property
    def was_set(self) -> bool:
        """Whether the clock was set since the last write of this process, or this process has not written yet."""
        return self._differs(_ahead(self._clock, self._clock.now()))

    def follow(self, tx: Database) -> None:
        """Shift the waits if the wall clock was set since the last write of any process."""
        ahead = _ahead(self._clock, tx.now)
        if not self._differs(ahead):
            return
        tx.call_after_commit(self._remember, ahead)
        state = load_state(tx)
        jump = _jump_since(tx, state, self._clock.boot, ahead)
        same_boot = state is not None and state.boot == self._clock.boot
        state = state or ClockState(self._clock.boot, ahead)
        drift, booted_at = (state.drift, state.booted_at) if same_boot else (0.0, tx.stamp)
        seen = replace(state, boot=self._clock.boot, ahead=ahead, drift=drift, booted_at=booted_at)
        if abs(jump) >= NOTICED_SECONDS:
            # A post that was accepted in an earlier boot is never younger than the clock says.
            of_former_runs = min(drift + jump, 0.0) - min(drift, 0.0)
            _move_waits(tx, jump, of_former_runs, seen.booted_at or "")
            jumps = (*state.jumps, (tx.stamp, jump))[-REMEMBERED:]
            seen = replace(seen, jumped_at=tx.stamp, jumped_by=jump, jumps=jumps)
            seen = replace(seen, moved=state.moved + jump, drift=drift + jump)
            if same_boot and seen.booted_at:
                seen = replace(seen, booted_at=after(seen.booted_at, jump))
        appliance_state.put(tx, appliance_state.CLOCK, json.dumps(asdict(seen)))

    def _differs(self, ahead: float) -> bool:
        return self._known is None or abs(ahead - self._known) >= NOTICED_SECONDS

    def _remember(self, ahead: float) -> None:
        self._known = ahead


def load_state(db: Database) -> ClockState | None:
    """Return the stored state, or None in a new database."""
    written = appliance_state.get(db, appliance_state.CLOCK)
    return None if written is None else ClockState(**json.loads(written))


def total_shift(db: Database, clock: Clock) -> timedelta:
    """Return the sum of all jumps. Without it, the wall clock runs evenly."""
    state = load_state(db)
    if state is None:
        return timedelta()
    unnoticed = _ahead(clock, clock.now()) - state.ahead if state.boot == clock.boot else 0.0
    return timedelta(seconds=state.moved + (unnoticed if abs(unnoticed) >= NOTICED_SECONDS else 0.0))


def shifts_since(db: Database, written_at: str) -> tuple[float, ...]:
    """Return the sum of all jumps in seconds, now and before each jump since this stamp. The newest sum comes first."""
    state = load_state(db)
    sums = [state.moved if state else 0.0]
    for at, seconds in reversed(state.jumps if state else ()):
        if at < after(written_at, min(seconds, 0.0)):
            break
        sums.append(sums[-1] - seconds)
    return tuple(sums)


def age_seconds(db: Database, now: datetime, written_at: str) -> float:
    """Return the age of a stamp, even if the clock was set since."""
    state, age = load_state(db), (now - parse(written_at)).total_seconds()
    if state is None or state.jumped_at is None or written_at > after(state.jumped_at, min(-state.jumped_by, 0.0)):
        return age
    return age - state.jumped_by


def written_before(db: Database, now: datetime, age: timedelta) -> str:
    """Return a stamp: rows with this stamp or an earlier stamp have at least this age, even if the clock was set.

    A clock with a wrong date for an hour must not make rows a year old.
    """
    state = load_state(db)
    before = safe = stamp(now - age)
    for at, seconds in reversed(state.jumps if state else ()):
        if at <= before:  # the jump and all earlier stamps are older than `age`
            break
        before = after(before, -seconds)  # the same instant on the clock before the jump
        safe = min(safe, before)
    return safe


def recent_jump(db: Database, now: datetime) -> ClockState | None:
    """Return the last jump of the last day, without jumps of the original installation of a restored database."""
    state = load_state(db)
    if state is None or state.jumped_at is None or abs(now - parse(state.jumped_at)) > SHOWN:
        return None
    return state if state.jumped_at > (appliance_state.get(db, appliance_state.ORIGINAL_UNTIL) or "") else None


def _jump_since(tx: Database, known: ClockState | None, boot: str, ahead: float) -> float:
    """Return the seconds by which the wall clock jumped since the last write of any process."""
    if known is not None and known.boot == boot and boot:
        return ahead - known.ahead
    # After a boot, only a jump back is visible, by a heartbeat from the future.
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    return 0.0 if reported is None else min((tx.now - parse(reported)).total_seconds(), 0.0)


def forward_jumps(db: Database, instant: str) -> list[tuple[str, float]]:
    """Return the jumps forward since this instant: the instant of the detection and the seconds."""
    state = load_state(db)
    return [(at, seconds) for at, seconds in (state.jumps if state else ()) if seconds > 0 and at >= instant]


def _move_waits(tx: Database, seconds: float, of_former_runs: float, booted_at: str) -> None:
    delivery_rows.move_waits(tx, seconds, of_former_runs, booted_at)
    for columns in WAITS:
        columns[0].model.update({column: shifted(column, seconds) for column in columns}).execute(tx)
    artifact_rows.shift_timestamps(tx, seconds)
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    if reported is not None:
        appliance_state.put(tx, appliance_state.HEARTBEAT, after(reported, seconds))
    direction = "forward" if seconds > 0 else "back"
    tx.call_after_commit(
        log.warning,
        f"the clock was set {direction} by {abs(seconds):.0f} seconds, to {tx.stamp}, and waits were shifted as well",
    )


def _ahead(clock: Clock, now: datetime) -> float:
    return now.timestamp() - clock.monotonic()
