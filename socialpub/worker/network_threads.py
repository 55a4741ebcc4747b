"""The threads of one network: it has as many as `publishing.workers` says, whatever the other networks do.

Calls to a network that hangs hold only its own threads, and a burst to one network uses all that it has. The profiles
of a network wait in one line. A thread takes the first profile and puts it at the end of the line after one delivery,
so a profile with a long queue does not delay the others.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from socialpub.core import logging

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
