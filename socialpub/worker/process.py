"""The worker process: Huey's threads run deliveries and periodic tasks, and the reconciler has its own thread."""

import contextlib
import signal
import time
from functools import partial
from types import FrameType

from huey.consumer import Consumer, Scheduler, Worker

from socialpub.accounts import profiles, usage
from socialpub.core import logging, machine
from socialpub.core.errors import SocialpubError
from socialpub.db.tables import holds
from socialpub.ops.notify import messages
from socialpub.ops.notify.schedule import Notifier
from socialpub.runtime import Runtime
from socialpub.worker.reconciler import Reconciler
from socialpub.worker.tasks import Background, NetworkQueue, wake
from socialpub.worker.wakeup import HueyWakeup

BACKGROUND_THREADS = 2
"""One task that waits for a network must not delay all others."""
BACKGROUND_STOP_SECONDS = 5.0
SHUTDOWN_SECONDS = 150.0
"""The wait for running deliveries, longer than the longest commit: an interrupted commit has an unknown outcome."""

log = logging.get_logger("socialpub.worker")


class _EverySecond(Scheduler):  # type: ignore[misc]  # Huey has no types
    periodic_task_seconds = 1


class _Consumer(Consumer):  # type: ignore[misc]
    """Runs the threads of all queues. After a stop signal, only running deliveries continue."""

    scheduler_class = _EverySecond

    def __init__(self, rt: Runtime, background: Background, networks: dict[str, NetworkQueue]) -> None:
        self._rt = rt
        self._hueys = [background.huey, *(queue.huey for queue in networks.values())]
        # No health check: it would replace a thread of a network by one of the background queue.
        super().__init__(background.huey, workers=BACKGROUND_THREADS, check_worker_health=False, graceful_signal="TERM")
        for name, queue in networks.items():
            for number in range(1, rt.settings.publishing.workers + 1):
                worker = Worker(queue.huey, self.stop_flag, self.default_delay, self.max_delay, self.backoff)
                self.worker_threads.append((worker, self._create_process(worker, f"{name}-{number}")))
        # Huey restarts itself at SIGHUP. Here a terminal that hangs up ends the worker, except under nohup.
        del self._signal_actions[signal.SIGHUP]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._signal_actions[signal.SIGHUP] = self._signal_actions[signal.SIGTERM]

    def start(self) -> None:
        super().start()  # from here on signals are handled
        log.info("the worker is up", threads_per_network=self._rt.settings.publishing.workers)

    def stop(self, graceful: bool = False) -> None:
        self._rt.stopping.set()
        self._rt.process.mark_stopping()
        self._rt.service_manager.stopping()
        self.stop_flag.set()  # a thread without a task and without this flag would ask the closed queue in a busy loop
        for huey in self._hueys:
            huey.storage.close()
        with contextlib.suppress(SocialpubError):
            self._rt.write(messages.record_end)
        super().stop(graceful=True)

    def _join_workers(self) -> bool:
        began = time.monotonic()
        for number, (_, thread) in enumerate(self.worker_threads):
            seconds = BACKGROUND_STOP_SECONDS if number < BACKGROUND_THREADS else SHUTDOWN_SECONDS
            thread.join(max(began + seconds - time.monotonic(), 0))
        return not any(thread.is_alive() for _, thread in self.worker_threads)

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        super()._handle_signal(signum, frame)
        if signum == signal.SIGHUP:
            # Shell and kernel both send a signal for one hang-up.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)


def run(rt: Runtime) -> int:
    """Deliver until a signal (SIGTERM, SIGINT, SIGHUP); return the exit code. Runs in the main thread."""
    assert isinstance(rt.wakeup, HueyWakeup)
    machine.prepare_to_serve()
    background, reconciler, notifier = Background(rt), Reconciler(rt), Notifier(rt)
    rt.write(messages.record_start)
    rt.write(lambda _, tx: holds.probe_all(tx))  # the configuration may have been corrected
    for error in profiles.find_not_enabled(rt):
        log.warning("a network is not enabled", reason=error.message, remedy=error.hint)
    networks = {name: NetworkQueue(rt, name) for name in rt.providers}
    notifier.start()
    rt.wakeup.listen(partial(wake, rt, networks))
    reconciler.start()
    _Consumer(rt, background, networks).run()
    background.backups.stop()
    background.webhooks.stop()
    reconciler.join()
    notifier.join()
    with contextlib.suppress(SocialpubError):
        usage.write_calls(rt)
    log.info("the worker has stopped")
    return 0
