"""The wake-up: Huey carries a delivery's id to the worker at once, and may lose it without harm.

The queue lies in a file of its own that nobody backs up. With each id goes a datagram, so that a post published now is
taken up in milliseconds.
"""

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huey import Huey

from socialpub.core import logging
from socialpub.worker.queue_storage import QueueStorage, discard_foreign, replace_if_damaged
from socialpub.worker.wakeup_message import TASK, WakeupSerializer
from socialpub.worker.wakeup_socket import WakeupSocket

log = logging.get_logger("socialpub.doorbell")

QUEUE = "wake-ups"
"""A former version pickled what it put into the queue `socialpub`: nobody takes anything out of that one any more."""


class HueyWakeup:
    """Wakes the worker through the queue file. Never fails its caller: the row is the truth, and the reconciler wakes
    the worker again.

    From another process than the worker it goes out on a thread of its own, together with those that wait: posts that
    share a commit share a wake-up, and no caller waits for it.
    """

    def __init__(self, queue_file: Path, run_dir: Path) -> None:
        replace_if_damaged(queue_file)
        self.socket = WakeupSocket(run_dir)
        self.huey = Huey(
            QUEUE, storage_class=QueueStorage, results=False, store_none=False, utc=True,
            serializer=WakeupSerializer(), filename=str(queue_file), wakeup_socket=self.socket,
        )  # fmt: skip
        discard_foreign(self.huey.storage)
        self._work: Callable[[str], None] = _no_worker_here

        def deliver(delivery_id: str) -> None:
            self._work(delivery_id)

        # Huey names a task by its module, too.
        deliver.__module__, _, name = TASK.rpartition(".")
        self._deliver: Any = self.huey.task(name=name)(deliver)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_forever, name="wakeup", daemon=True)
        self._sender.start()

    def ring(self, delivery_id: str) -> None:
        if self.socket.listens_here:
            self._work(delivery_id)
        else:
            self._waiting.put(delivery_id)

    def _send_forever(self) -> None:
        while (delivery_id := self._waiting.get()) is not None:
            ids = [delivery_id]
            with contextlib.suppress(queue.Empty):
                while (more := self._waiting.get_nowait()) is not None:
                    ids.append(more)
                self._waiting.put(None)  # the end comes after what was sent before it
            try:
                self.huey.storage.enqueue_all([self.huey.serialize_task(self._deliver.s(one)) for one in ids])
            except sqlite3.Error as error:
                log.warning("the worker could not be woken; the reconciler does it", reason=str(error))

    def answer(self, work: Callable[[str], None]) -> None:
        """Have `work` run for every wake-up; only in the worker."""
        self._work = work

    def close(self) -> None:
        self._waiting.put(None)
        self._sender.join()
        self.socket.close()
        self.huey.storage.close()


def _no_worker_here(_delivery_id: str) -> None:
    raise RuntimeError("only the worker answers a wake-up")
