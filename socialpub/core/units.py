"""Durations, sizes and lists as texts, and the largest files that the API accepts.

A duration is one whole number and one unit (`90s`, `15m`, `24h`, `90d`), in the configuration and on the command line.
"""

import re
from collections.abc import Sequence
from datetime import timedelta

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_DURATION = timedelta(days=36500)
"""The maximum duration. A hundred years from now is still a valid date."""

_DURATION = re.compile(r"([0-9]{1,12})([smhd])")


def parse_duration(text: str) -> timedelta:
    """Return the duration written as `text`. Raise `ValueError` with the accepted form."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be a whole number and one unit (s, m, h or d), such as 90s, 15m, 24h or 90d")
    seconds = int(match[1]) * UNIT_SECONDS[match[2]]
    if seconds > MAX_DURATION.total_seconds():
        raise ValueError(f"must be at most {duration(MAX_DURATION)}")
    return timedelta(seconds=seconds)


def in_words(seconds: float) -> str:
    """Return the approximate duration in words."""
    if seconds >= 2 * UNIT_SECONDS["d"]:
        return f"{round(seconds / UNIT_SECONDS['d'], 1):g} days"
    if seconds >= 2 * UNIT_SECONDS["h"]:
        return f"{round(seconds / UNIT_SECONDS['h'], 1):g} hours"
    if seconds > 2 * UNIT_SECONDS["m"]:
        return f"{seconds / UNIT_SECONDS['m']:.0f} minutes"
    return count(round(seconds), "second", "seconds")


def duration(duration: timedelta) -> str:
    """Return the duration in the form that `parse_duration` reads, in the largest unit that fits.

    Durations up to two days are in hours, as in the documentation (`48h`, not `2d`).
    """
    seconds = int(duration.total_seconds())
    for unit in ("d", "h", "m"):
        if unit == "d" and seconds <= 2 * UNIT_SECONDS["d"]:
            continue
        if seconds and seconds % UNIT_SECONDS[unit] == 0:
            return f"{seconds // UNIT_SECONDS[unit]}{unit}"
    return f"{seconds}s"


def count(number: int, singular: str, plural: str) -> str:
    """Return "1 post is" or "3 posts are" for `singular` "post is" and `plural` "posts are"."""
    return f"1 {singular}" if number == 1 else f"{number} {plural}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Return `X, TikTok and Pinterest`."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_SIZE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size(size_bytes: int) -> str:
    """Return `150 MiB (157286400 bytes)`, or only the bytes below 1 KiB."""
    for unit_bytes, unit in _SIZE_UNITS:
        if size_bytes >= unit_bytes:
            return f"{round(size_bytes / unit_bytes, 1):g} {unit} ({size_bytes} bytes)"
    return f"{size_bytes} bytes" if size_bytes != 1 else "1 byte"


MAX_IMAGE_BYTES = 32 * 1024 * 1024
MAX_IMAGE_PIXELS = 100_000_000  # of one frame
MAX_IMAGE_TOTAL_PIXELS = 5 * MAX_IMAGE_PIXELS  # of all frames of an animation
MAX_VIDEO_BYTES = 157_286_400
