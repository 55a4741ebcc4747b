"""Durations as people write them: `90s`, `15m`, `24h`, `90d`.

One whole number and one unit, in the configuration and on the command line alike; anything else is refused
with a sentence that shows the form.
"""

import re
from datetime import timedelta

SECONDS_OF = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = timedelta(days=36500)
"""A hundred years: added to any instant of today it still is a date."""

_FORM = re.compile(r"([0-9]{1,12})([smhd])")


def parse(text: str) -> timedelta:
    """The duration written as `text`. Raises `ValueError`, whose message says what is accepted."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError("a duration is a whole number and one unit (s, m, h or d), such as 90s, 15m, 24h or 90d")
    seconds = int(match[1]) * SECONDS_OF[match[2]]
    if seconds > LONGEST.total_seconds():
        raise ValueError(f"a duration is at most {write(LONGEST)}")
    return timedelta(seconds=seconds)


def in_words(seconds: float) -> str:
    """Return about how long that is, for people."""
    if seconds >= 2 * SECONDS_OF["d"]:
        return f"{round(seconds / SECONDS_OF['d'], 1):g} days"
    if seconds >= 2 * SECONDS_OF["h"]:
        return f"{round(seconds / SECONDS_OF['h'], 1):g} hours"
    return f"{seconds / SECONDS_OF['m']:.0f} minutes" if seconds > 2 * SECONDS_OF["m"] else f"{seconds:.0f} seconds"


def write(duration: timedelta) -> str:
    """A text that `parse` reads as `duration`, in the largest unit that fits; fractions of a second are dropped.

    Up to two days are written in hours, as the documentation speaks of them (`48h`, not `2d`).
    """
    seconds = int(duration.total_seconds())
    for unit in ("d", "h", "m"):
        if unit == "d" and seconds <= 2 * SECONDS_OF["d"]:
            continue
        if seconds and seconds % SECONDS_OF[unit] == 0:
            return f"{seconds // SECONDS_OF[unit]}{unit}"
    return f"{seconds}s"
