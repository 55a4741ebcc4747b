"""The worker's tasks, and threads that run the tasks of a network's queue without signal handlers."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from huey.consumer import Consumer

from socialpub.runtime import Runtime
from socialpub.worker.queues import Queues
from socialpub.worker.tasks import Tasks


@contextmanager
def background_tasks(rt: Runtime) -> Iterator[Tasks]:
    with closing(Queues(rt.settings.queue_file, rt.settings.run_dir, rt.providers)) as queues:
        yield Tasks(rt, queues)


@contextmanager
def listening_tasks(rt: Runtime) -> Iterator[Tasks]:
    """The tasks of a worker that takes wake-ups, also those of `rt`."""
    with background_tasks(rt) as tasks:
        tasks.queues.listen(deliver=tasks.deliver, run=tasks.run)
        rt.wakeup = tasks.queues
        yield tasks


@contextmanager
def answering(queues: Queues, network: str, threads: int) -> Iterator[None]:
    """Run the given number of threads. At the end, wait until each has ended."""
    consumer = Consumer(queues.networks[network], workers=threads, periodic=False, scheduler_interval=60)
    for _, thread in consumer.worker_threads:
        thread.start()
    try:
        yield
    finally:
        consumer.stop_flag.set()
        queues.wake_all()
        for _, thread in consumer.worker_threads:
            thread.join()
