"""The worker process: Huey's consumer answers wake-ups, and the reconciler runs beside it."""

import contextlib
import signal
import time
from collections.abc import Callable
from types import FrameType

from huey.consumer import Consumer

from socialpub.core import logging, malloc_arenas
from socialpub.core.errors import SocialpubError, Unavailable
from socialpub.db import delivery_rows
from socialpub.ops.notify import absence
from socialpub.ops.notify.notifier import Notifier
from socialpub.publishing import engine, holds
from socialpub.runtime import Runtime
from socialpub.worker.housekeeping import Housekeeping
from socialpub.worker.network_threads import NetworkThreads
from socialpub.worker.reconciler import Reconciler
from socialpub.worker.wakeup import HueyWakeup

SHUTDOWN_SECONDS = 150.0
"""Longer than the longest commit: dropping a running one would make its outcome unknown. `serve`, which promises to
end sooner, leaves what is still in flight to recovery."""

log = logging.get_logger("socialpub.worker")


class _Consumer(Consumer):  # type: ignore[misc]
    """Stops taking up work as soon as it is told to stop, and lets what is running end."""

    def __init__(self, rt: Runtime, wakeup: HueyWakeup) -> None:
        self._rt = rt
        self._socket = wakeup.socket
        super().__init__(
            wakeup.huey,
            workers=1,  # it only hands over
            periodic=False,
            scheduler_interval=60,
            graceful_signal="TERM",
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        # Huey would start itself anew, by a path that is not ours; a terminal that hangs up means to end it, but for
        # somebody who ran this with nohup.
        del self._signal_actions[signal.SIGHUP]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._signal_actions[signal.SIGHUP] = self._signal_actions[signal.SIGTERM]

    def start(self) -> None:
        super().start()  # from here on signals are heeded
        log.info("the worker is up", threads_per_network=self._rt.settings.publishing.workers)

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        super()._handle_signal(signum, frame)
        if signum == signal.SIGHUP:
            # Shell and kernel both tell of one hang-up; only somebody who asks twice means to cut the stop short.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def stop(self, graceful: bool = False) -> None:
        self._rt.stopping.set()
        self._rt.process.mark_stopping()
        self._rt.service_manager.stopping()
        for _ in range(self.workers):
            self._socket.signal()  # whoever waits looks up and sees that it is over
        super().stop(graceful=True)


def run(rt: Runtime) -> int:
    """Deliver until told to stop (SIGTERM, SIGINT, SIGHUP); the exit code. Wants the main thread."""
    assert isinstance(rt.wakeup, HueyWakeup)
    malloc_arenas.limit()
    reconciler, housekeeping, notifier = Reconciler(rt), Housekeeping(rt), Notifier(rt)
    rt.write(absence.note_start)
    rt.write(lambda _, tx: holds.probe_all(tx))  # the configuration may have been mended

    def work(delivery_id: str, others_wait: Callable[[], bool]) -> bool:
        try:
            return engine.work(rt, delivery_id, others_wait)
        except Unavailable as error:
            log.warning(
                "the database is unavailable, so nothing was claimed; the reconciler tries again", reason=error.detail
            )
            return False

    threads = {name: NetworkThreads(name, rt.settings.publishing.workers, work) for name in rt.providers}

    def hand_over(delivery_id: str) -> None:
        network, profile_id = delivery_rows.queue_of(rt.reader, delivery_id) or ("", "")
        if network in threads:
            threads[network].put(profile_id, delivery_id)

    notifier.start()
    rt.wakeup.answer(hand_over)
    rt.wakeup.socket.listen()
    reconciler.start()
    housekeeping.start()
    _Consumer(rt, rt.wakeup).run()
    rt.stopping.set()
    with contextlib.suppress(SocialpubError):  # the next one says then that this one was away
        rt.write(absence.note_end)
    for own in threads.values():
        own.stop()
    until = time.monotonic() + SHUTDOWN_SECONDS
    for own in threads.values():
        own.join(until)
    reconciler.join()
    housekeeping.join()
    notifier.join()
    log.info("the worker has ended")
    return 0
