"""Threads that answer the queue of one network, as the worker has them, without its signal handlers."""

from collections.abc import Iterator
from contextlib import contextmanager

from huey.consumer import Consumer

from socialpub.db.tables import delivery_rows
from socialpub.runtime import Runtime
from socialpub.worker.tasks import NetworkQueue


class _Consumer(Consumer):  # type: ignore[misc]
    def _set_signal_handlers(self) -> None:
        pass


class DirectWakeup:
    """Puts each wake-up into one queue, with neither a file nor a process between."""

    def __init__(self, rt: Runtime, queue: NetworkQueue) -> None:
        self._rt, self._queue = rt, queue

    def notify(self, delivery_id: str) -> None:
        _, profile_id = delivery_rows.find_network_and_profile(self._rt.reader, delivery_id) or ("", "")
        self._queue.put(profile_id, delivery_id)


@contextmanager
def answering(queue: NetworkQueue, threads: int) -> Iterator[None]:
    """Run the given number of threads. At the end, wait until each has ended."""
    consumer = _Consumer(queue.huey, workers=threads, periodic=False)
    consumer.start()
    try:
        yield
    finally:
        queue.huey.storage.close()
        consumer.stop(graceful=True)
