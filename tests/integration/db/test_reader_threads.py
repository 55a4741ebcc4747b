"""What outlives its use: connections of threads that have ended, and a process that is to end."""

import threading

from socialpub.runtime import Runtime


def test_a_thread_that_has_ended_leaves_no_connection_behind(rt: Runtime) -> None:
    rt.reader.value("SELECT 1")
    before = len(rt.db._readers)
    for _ in range(20):
        thread = threading.Thread(target=lambda: rt.reader.value("SELECT 1"))
        thread.start()
        thread.join()
    assert len(rt.db._readers) - before <= 1
