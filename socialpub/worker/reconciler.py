"""The sweep: rings everything that is due or orphaned, at start and every second, whatever became of earlier rings.

It is a thread of its own in the worker, which waits for nobody. It also shows that the worker lives (the heartbeat).
The housekeeping that is due now and then may wait for a network or a disk, so it has another thread.
"""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from socialpub.accounts import connect, renewal, revocation
from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import SocialpubError
from socialpub.db import appliance_state
from socialpub.db.database import Tx
from socialpub.ops.health import HEARTBEAT_SECONDS
from socialpub.publishing import backfill, holds, idempotency, renditions, scheduling, uploads
from socialpub.runtime import Runtime

T = TypeVar("T")

SWEEP_SECONDS = 1.0
RING_AGAIN_SECONDS = 30.0
"""A lane that was rung is not rung again for this long, unless its ring was answered: a full house gains nothing."""

log = logging.get_logger("socialpub.sweep")


@dataclass(slots=True)
class Chore:
    """Something that is due now and then, whether or not anything is published."""

    every_seconds: float
    do: Callable[[Runtime], object]
    due_at: float = 0.0


class Sweep:
    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self._rung: dict[str, float] = {}
        self._heartbeat = Chore(HEARTBEAT_SECONDS, lambda rt: rt.write(beat))
        self._chores = [
            Chore(10.0, revocation.start),
            Chore(60.0, renew_idle_tokens),
            Chore(3600.0, renewal.warn),
            Chore(20.0, backfill.ask),
            Chore(3600.0, uploads.clean),
            Chore(3600.0, renditions.clean),
            Chore(3600.0, lambda rt: rt.write(idempotency.clean)),
            Chore(3600.0, lambda rt: rt.write(connect.clean)),
        ]
        self._threads = [
            threading.Thread(target=self._run, name="sweep", daemon=True),
            threading.Thread(target=self._keep_house, name="housekeeping", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=5)

    def answered(self, delivery_id: str) -> None:
        """The ring of this delivery has reached a worker thread."""
        self._rung.pop(delivery_id, None)

    def once(self) -> int:
        """Ring every lane with something to do, and show that we live; how many were rung."""
        now = self.rt.clock.monotonic()
        self._do([self._heartbeat])
        rung = 0
        for delivery_id in [] if appliance_state.paused_at(self.rt.reader) else self._due():
            if now - self._rung.get(delivery_id, -RING_AGAIN_SECONDS) >= RING_AGAIN_SECONDS:
                self._rung[delivery_id] = now
                self.rt.doorbell.ring(delivery_id)
                rung += 1
        return rung

    def _do(self, chores: list[Chore]) -> None:
        for chore in chores:
            now = self.rt.clock.monotonic()
            if now >= chore.due_at:
                chore.due_at = now + chore.every_seconds
                _attempt(chore.do, self.rt)

    def _due(self) -> list[str]:
        return scheduling.due_lanes(self.rt.reader, self.rt.stamp(), self.rt.process)

    def _run(self) -> None:
        while not self.rt.stopping.is_set():
            _attempt(Sweep.once, self)
            self.rt.stopping.wait(self._pause())

    def _keep_house(self) -> None:
        while not self.rt.stopping.is_set():
            self._do(self._chores)
            self.rt.stopping.wait(SWEEP_SECONDS)

    def _pause(self) -> float:
        """Until the next delivery is due, at most a second."""
        try:
            at = scheduling.next_run_at(self.rt.reader, self.rt.stamp())
        except sqlite3.Error:
            at = None
        if at is None:
            return SWEEP_SECONDS
        return min(max((parse(at) - self.rt.now()).total_seconds(), 0.01), SWEEP_SECONDS)


def _attempt(work: Callable[[T], object], on: T) -> None:
    """The sweep outlives whatever fails inside it: it is what makes everything else come right again."""
    try:
        work(on)
    except SocialpubError as error:
        log.warning("the sweep could not do all of its work", reason=error.detail)
    except Exception:
        log.error("the sweep failed and goes on", exc_info=True)


def renew_idle_tokens(rt: Runtime) -> str | None:
    """Renew one profile's tokens, not of a network that refuses this app; the profile's id, or None."""
    return renewal.keep_alive(rt, holds.held(rt.reader))


def beat(rt: Runtime, tx: Tx) -> None:
    """Note that a worker lives and can write. Readiness looks at the age of this."""
    appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp)
