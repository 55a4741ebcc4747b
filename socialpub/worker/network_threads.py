"""The threads of one network: it has as many as `publishing.workers` says, whatever the other networks do.

Calls to a network that hangs hold only its own threads, and a burst to one network uses all that it has.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from socialpub.core import logging

log = logging.get_logger("socialpub.worker")


class NetworkThreads:
    """Answers wake-ups for the deliveries of one network. Threads begin when they are needed, and never end before the
    worker does."""

    def __init__(self, network: str, most: int, work: Callable[[str], None]) -> None:
        self._network = network
        self._most = most
        self._work = work
        self._change = threading.Condition()
        self._waiting: deque[str] = deque()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def put(self, delivery_id: str) -> None:
        """Have it taken up by the next free thread; one that waits already is not put in twice."""
        with self._change:
            if self._stopped or delivery_id in self._waiting:
                return
            self._waiting.append(delivery_id)
            if self._idle < len(self._waiting) and len(self._threads) < self._most:
                name = f"{self._network}-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._change.notify()

    def stop(self) -> None:
        """Take nothing up any more; what runs goes on."""
        with self._change:
            self._stopped = True
            self._waiting.clear()
            self._change.notify_all()

    def join(self, until: float) -> None:
        """Wait until every thread has ended, at most until then on `time.monotonic`."""
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _run(self) -> None:
        while (delivery_id := self._next()) is not None:
            try:
                self._work(delivery_id)
            except Exception:
                log.error("a worker thread met an error that nobody foresaw and goes on", exc_info=True)

    def _next(self) -> str | None:
        with self._change:
            self._idle += 1
            try:
                while not self._waiting and not self._stopped:
                    self._change.wait()
                return self._waiting.popleft() if self._waiting else None
            finally:
                self._idle -= 1
