"""Until when X asks to wait, as the headers of a response have it.

A reset is a moment on X's clock, and the `Date` of the very same answer says what that clock shows.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime

from socialpub.providers.responses import http_date

CLOCK_DOUBT_SECONDS = 60
"""A reset longer past than this speaks of a clock that is wrong, not of a window that is open."""
LONGEST_SECONDS = 366 * 86400
"""X's windows last a quarter of an hour, a day or a month: what is further off is no such time."""


def reset_in(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """Seconds until X lets the call through again; None when it named no time that can be believed.

    A 24-hour window counts only when it is used up; of several the last to open. `now` is for an answer that does not
    say when it was given.
    """
    given_at = http_date(headers.get("date")) or now
    daily = [
        _seconds_until(_number(headers.get(f"x-{who}-limit-24hour-reset")), given_at)
        for who in ("user", "app")
        if _number(headers.get(f"x-{who}-limit-24hour-remaining")) == 0
    ]
    believable = [seconds for seconds in daily if seconds is not None]
    if believable:
        return max(believable)
    window = _seconds_until(_number(headers.get("x-rate-limit-reset")), given_at)
    return _retry_after(headers.get("retry-after"), given_at) if window is None else window


def _seconds_until(reset: float | None, given_at: datetime | None) -> float | None:
    return None if reset is None or given_at is None else _believed(reset - given_at.timestamp())


def _retry_after(written: str | None, given_at: datetime | None) -> float | None:
    """Seconds, or the date of a moment."""
    seconds = _number(written)
    if seconds is not None:
        return _believed(seconds)
    moment = http_date(written)
    return None if moment is None else _seconds_until(moment.timestamp(), given_at)


def _believed(seconds: float) -> float | None:
    return max(1.0, float(math.ceil(seconds))) if -CLOCK_DOUBT_SECONDS < seconds <= LONGEST_SECONDS else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text.strip()) else None
