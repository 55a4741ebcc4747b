"""One worker process after the other, each killed as by SIGKILL."""

from tests.support.appliance import open_appliance
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled


class Lives:
    """One worker process after the other over the same folder."""

    def __init__(self, folder, network, clock):
        self.folder, self.network, self.clock = folder, network, clock
        self.deaths = 0

    def begin(self):
        return open_appliance(self.folder, self.clock, providers={"x": self.network})

    def go_on(self, most=20, *, asked_to_stop=False, seen_by_another=False):
        """Until everything rests; each death begins a new process. The last one."""
        for _ in range(most):
            rt = self.begin()
            try:
                drain(rt, self.clock)
                return rt
            except ProcessKilled:
                self.deaths += 1
                if asked_to_stop:
                    rt.process.mark_stopping()
                die(rt)
                if seen_by_another:
                    other = self.begin()
                    other.process.is_alive(rt.process.name)  # as for an idempotency key
                    other.close()
        raise AssertionError("it dies for ever")


def die(rt):
    """As by SIGKILL: the lock is free, and its file stays."""
    rt.process._lock.release()
    rt.db.stop()
