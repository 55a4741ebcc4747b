"""Makes the hours of a process pass quicker: Python imports this first when the folder lies on PYTHONPATH.

An account is looked at for two minutes before a post counts as absent, and a test does not wait for that. All processes
of an installation share one fast clock, so that they agree about the time as they otherwise would. Wall clock and
monotonic clock go on from those of the machine. Otherwise an earlier folder looks as if its clock was set back.

Deadlines of calls, which the event loop measures, are cut to a few seconds. A file holds how far the clock has been put
forward on top of that, so that a test need not be done with something before a certain time. Everything else is as the
owner starts it.
"""

import mmap
import os
import struct
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

PACE = float(os.environ["FAST_CLOCK_PACE"])
SINCE = float(os.environ["FAST_CLOCK_SINCE"])
SINCE_MONOTONIC = float(os.environ["FAST_CLOCK_SINCE_MONOTONIC"])
DEADLINE_SECONDS = float(os.environ["FAST_CLOCK_DEADLINE_SECONDS"])
IDLE_GRACE_SECONDS = os.environ.get("FAST_CLOCK_IDLE_GRACE_SECONDS")

with Path(os.environ["FAST_CLOCK_AHEAD_FILE"]).open("rb") as file:
    AHEAD = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)


def ahead() -> float:
    return float(struct.unpack("d", AHEAD[:8])[0])


def now(_clock: object) -> datetime:
    return datetime.fromtimestamp(SINCE + (time.time() - SINCE) * PACE + ahead(), UTC)


def monotonic(_clock: object) -> float:
    return SINCE_MONOTONIC + (time.monotonic() - SINCE_MONOTONIC) * PACE + ahead()


if "sandbox" in sys.orig_argv:
    from socialpub.sandbox import memory

    memory.MachineClock.now = now  # type: ignore[method-assign]
else:
    from socialpub.core import clock
    from socialpub.providers import http

    clock.SystemClock.now = now  # type: ignore[method-assign]
    clock.SystemClock.monotonic = monotonic  # type: ignore[method-assign]
    http.MAX_DEADLINE_SECONDS = DEADLINE_SECONDS
    if IDLE_GRACE_SECONDS is not None:
        from socialpub.web.http import server

        server.IDLE_GRACE_SECONDS = float(IDLE_GRACE_SECONDS)
