"""The worker process: Huey's threads run deliveries and background tasks, and the reconciler has its own thread."""

import contextlib
import signal
import time

from huey.consumer import Consumer

from socialpub.accounts import profiles, usage
from socialpub.core import logging, machine
from socialpub.core.errors import SocialpubError
from socialpub.db.tables import waits
from socialpub.ops.notify.notifier import Notifier
from socialpub.runtime import WORKERS, Runtime
from socialpub.worker.queues import Queues
from socialpub.worker.reconciler import Reconciler
from socialpub.worker.tasks import Tasks

BACKGROUND_THREADS = 2
"""One task that waits for a network must not delay all others."""
BACKGROUND_STOP_SECONDS = 5.0
SHUTDOWN_SECONDS = 150.0
"""The wait for running deliveries, longer than the longest commit: an interrupted commit has an unknown outcome."""
ERROR_SECONDS = 5.0
"""The pause of a thread that cannot read its queue."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = logging.get_logger(__name__)


class WorkerConsumer(Consumer):  # type: ignore[misc]  # Huey has no types
    """Runs the background queue, and owns a consumer for each network. Only this one handles signals.

    After the first signal, only running deliveries continue. Under nohup, a terminal that hangs up changes nothing.
    """

    def __init__(self, rt: Runtime, queues: Queues) -> None:
        options = {"graceful_signal": "TERM", "initial_delay": ERROR_SECONDS, "scheduler_interval": 60}
        super().__init__(
            queues.background, workers=BACKGROUND_THREADS, shutdown_timeout=BACKGROUND_STOP_SECONDS, **options
        )
        self._rt, self._queues = rt, queues
        self.networks = [
            Consumer(huey, workers=WORKERS, periodic=False, **options) for huey in queues.networks.values()
        ]

    def start(self) -> None:
        for consumer in self.networks:  # their own `start` would take the signals
            for thread in (consumer.scheduler, *(thread for _, thread in consumer.worker_threads)):
                thread.start()
        handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        super().start()
        for number in SIGNALS[1:]:  # Huey drops running tasks at SIGINT, and starts again at SIGHUP
            act = (lambda *_: signal.raise_signal(signal.SIGTERM)) if number in handled else signal.SIG_IGN
            signal.signal(number, act)
        log.info("the worker is up", threads_per_network=WORKERS)

    def check_worker_health(self) -> bool:
        healthy = [consumer.check_worker_health() for consumer in self.networks]
        return bool(super().check_worker_health() and all(healthy))

    def stop(self, graceful: bool = False) -> None:  # a delivery is never dropped
        for number in SIGNALS:  # Huey drops running tasks at a second signal
            signal.signal(number, signal.SIG_IGN)
        self._rt.stopping.set()
        self._rt.process.mark_stopping()
        self._rt.service_manager.stopping()
        began = time.monotonic()
        for consumer in (self, *self.networks):
            consumer.stop_flag.set()
        self._queues.wake_all()
        super().stop(graceful=True)
        for consumer in self.networks:
            consumer.shutdown_timeout = max(began + SHUTDOWN_SECONDS - time.monotonic(), 0)
            consumer.stop(graceful=True)


def run(rt: Runtime) -> int:
    """Deliver until a signal (SIGTERM, SIGINT, SIGHUP); return the exit code. Runs in the main thread."""
    queues = rt.wakeup
    assert isinstance(queues, Queues)
    machine.prepare_to_serve()
    tasks, notifier = Tasks(rt, queues), Notifier(rt)
    reconciler = Reconciler(rt, tasks)
    rt.write(lambda _, tx: waits.probe_all(tx))  # the configuration may have been corrected
    for error in profiles.find_not_enabled(rt):
        log.warning("a network is not enabled", reason=error.message, remedy=error.hint)
    notifier.start()
    queues.listen(deliver=tasks.deliver, run=tasks.run)
    reconciler.start()
    WorkerConsumer(rt, queues).run()
    tasks.backups.stop()
    tasks.webhooks.stop()
    reconciler.join()
    notifier.join()
    with contextlib.suppress(SocialpubError):
        usage.write_calls(rt)
    log.info("the worker has stopped")
    return 0
