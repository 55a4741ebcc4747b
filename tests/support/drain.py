"""Does everything that is due and moves the clock to what comes next, until nothing is left."""

from socialpub.core.clock import parse
from socialpub.db.queries import profile_queue
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock
from tests.support.select import select_all

DAY = 24 * 3600.0


def drain(rt: Runtime, clock: HandClock | None = None, *, within: float = 4 * DAY, steps: int = 2000) -> None:
    """Advance every delivery that is due; with a clock, also those that become due `within` that many seconds."""
    rt.db.follow_clock()  # as the reconciler does every second
    until = rt.now().timestamp() + within
    for _ in range(steps):
        due = engine.list_due_queues(rt)
        before = snapshot(rt)
        for _, profile_id in due:
            engine.work(rt, profile_id)
        if due and snapshot(rt) != before:
            continue
        at = profile_queue.next_run_at(rt.db, rt.stamp(), rt.settings.publishing.max_lateness)
        if clock is None or at is None or parse(at).timestamp() > until:
            return
        clock.forward((parse(at) - clock.now()).total_seconds() + 0.001)
    raise AssertionError("the queue does not come to rest")


def snapshot(rt: Runtime) -> list[tuple[object, ...]]:
    rows = select_all(rt.db, "SELECT id, state, step, run_at, progress, memo FROM delivery ORDER BY id")
    return [tuple(row) for row in rows]
