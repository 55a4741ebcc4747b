"""Makes the hours of a process pass quicker: Python imports this first when the folder lies on PYTHONPATH.

An account is looked at for two minutes before a post counts as absent, and a test does not wait for that. All processes
of a stage share one quick clock, so that they agree about the time as they otherwise would. Deadlines of calls, which
the event loop measures, are cut to a few seconds. Everything else is as the owner starts it.
"""

import os
import sys
import time
from datetime import UTC, datetime

PACE = float(os.environ["HURRY_PACE"])
SINCE = float(os.environ["HURRY_SINCE"])
DEADLINE_SECONDS = float(os.environ["HURRY_DEADLINE_SECONDS"])


def now(_clock: object) -> datetime:
    return datetime.fromtimestamp(SINCE + (time.time() - SINCE) * PACE, UTC)


def monotonic(_clock: object) -> float:
    return time.monotonic() * PACE


if "sandbox" in sys.orig_argv:
    from socialpub.sandbox import context

    context.MachineClock.now = now  # type: ignore[method-assign]
else:
    from socialpub.core import clock
    from socialpub.providers import http

    clock.SystemClock.now = now  # type: ignore[method-assign]
    clock.SystemClock.monotonic = monotonic  # type: ignore[method-assign]
    http.MAX_DEADLINE_SECONDS = DEADLINE_SECONDS
