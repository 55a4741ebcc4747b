"""Until when X asks to wait, as the headers of a response have it."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

CLOCK_DOUBT_SECONDS = 60
"""A reset longer past than this speaks of a clock that is wrong, not of a window that is open."""


def reset_in(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """Seconds until X lets the call through again; None when it named no time that can be believed.

    A 24-hour window counts only when it is used up; of several the last to open. Without a `now` of ours the time of
    the response itself is used.
    """
    now = now or _date(headers)
    daily = [
        reset
        for who in ("user", "app")
        if _number(headers.get(f"x-{who}-limit-24hour-remaining")) == 0
        and (reset := _number(headers.get(f"x-{who}-limit-24hour-reset"))) is not None
    ]
    reset = max(daily) if daily else _number(headers.get("x-rate-limit-reset"))
    if now is not None and reset is not None and reset - now.timestamp() > -CLOCK_DOUBT_SECONDS:
        return max(1.0, float(math.ceil(reset - now.timestamp())))
    seconds = _number(headers.get("retry-after"))
    return None if seconds is None else max(1.0, float(seconds))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text.strip()) else None


def _date(headers: Mapping[str, str]) -> datetime | None:
    try:
        return datetime.strptime(headers.get("date", ""), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
