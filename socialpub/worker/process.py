"""The worker process: Huey's consumer hands wake-ups over, and threads for each network deliver."""

import contextlib
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from types import FrameType

from huey.consumer import Consumer

from socialpub.core import logging, machine
from socialpub.core.errors import SocialpubError, Unavailable
from socialpub.db.tables import delivery_rows, holds
from socialpub.ops.notify import messages
from socialpub.ops.notify.schedule import Notifier
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime
from socialpub.worker.reconciler import Reconciler
from socialpub.worker.tasks import Housekeeping
from socialpub.worker.wakeup import HueyWakeup

# MERGED from worker/network_threads.py: The threads of one network: it has as many as `publishing.workers` says, w

log = logging.get_logger("socialpub.worker")

Work = Callable[[str, Callable[[], bool]], bool]
"""Takes a delivery of a profile, and whether other profiles wait. Returns whether more of the profile may be due."""


class NetworkThreads:
    """Answers wake-ups for the profiles of one network. Threads begin when they are needed, and never end before the
    worker does."""

    def __init__(self, network: str, most: int, work: Work) -> None:
        self._network = network
        self._most = most
        self._work = work
        self._change = threading.Condition()
        self._line: OrderedDict[str, str] = OrderedDict()
        """The profiles that wait, each with the delivery of its wake-up."""
        self._at_work: dict[str, str | None] = {}
        """The profiles that a thread works on, each with the delivery of a wake-up that came meanwhile."""
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def put(self, profile_id: str, delivery_id: str) -> None:
        """Have the profile's queue taken up by the next free thread, or once more by the thread that works on it."""
        with self._change:
            if profile_id in self._at_work:
                self._at_work[profile_id] = delivery_id
            else:
                self._line_up(profile_id, delivery_id)

    def others_wait(self) -> bool:
        """Whether any profile waits for a thread."""
        return bool(self._line)

    def stop(self) -> None:
        """Take nothing up any more; what runs goes on."""
        with self._change:
            self._stopped = True
            self._line.clear()
            self._change.notify_all()

    def join(self, until: float) -> None:
        """Wait until every thread has ended, at most until then on `time.monotonic`."""
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _line_up(self, profile_id: str, delivery_id: str) -> None:
        """Put a profile at the end of the line, unless it waits already."""
        if self._stopped or profile_id in self._line:
            return
        self._line[profile_id] = delivery_id
        if self._idle < len(self._line) and len(self._threads) < self._most:
            name = f"{self._network}-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._change.notify()

    def _run(self) -> None:
        while (profile := self._next()) is not None:
            profile_id, delivery_id = profile
            more = False
            try:
                more = self._work(delivery_id, self.others_wait)
            except Exception:
                log.error("a worker thread met an error that nobody foresaw and goes on", exc_info=True)
            self._end(profile_id, delivery_id if more else None)

    def _next(self) -> tuple[str, str] | None:
        with self._change:
            self._idle += 1
            try:
                while not self._line and not self._stopped:
                    self._change.wait()
                if not self._line:
                    return None
                profile_id, delivery_id = self._line.popitem(last=False)
                self._at_work[profile_id] = None
                return profile_id, delivery_id
            finally:
                self._idle -= 1

    def _end(self, profile_id: str, more: str | None) -> None:
        with self._change:
            again = self._at_work.pop(profile_id) or more
            if again is not None:
                self._line_up(profile_id, again)


# MERGED from worker/process.py: The worker process: Huey's consumer answers wake-ups, and the reconciler runs besi

SHUTDOWN_SECONDS = 150.0
"""Longer than the longest commit: dropping a running one would make its outcome unknown. `serve`, which promises to
end sooner, leaves what is still in flight to recovery."""


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
    machine.limit_malloc_arenas()
    reconciler, housekeeping, notifier = Reconciler(rt), Housekeeping(rt), Notifier(rt)
    rt.write(messages.note_start)
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
        network, profile_id = delivery_rows.network_and_profile_of(rt.reader, delivery_id) or ("", "")
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
        rt.write(messages.note_end)
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
