"""How long TikTok asks to wait: in seconds, or as a date of HTTP, which is counted from the answer's own."""

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from socialpub.providers.responses import HttpResponse, seconds_in_header

MIN_PAUSE_SECONDS = 60.0
"""TikTok's windows are a minute long, and it documents no time to wait."""


def retry_after(response: HttpResponse) -> float | None:
    """Seconds, a minute at least; None when none are named. What is no wait at all (nought, a date that has passed)
    comes as it is named."""
    named = seconds_in_header(response, "retry-after")
    if named is None:
        named = _until(response)
    return max(named, MIN_PAUSE_SECONDS) if named is not None and named > 0 else named


def _until(response: HttpResponse) -> float | None:
    at, now = _date_in(response, "retry-after"), _date_in(response, "date")
    return None if at is None or now is None else (at - now) / timedelta(seconds=1)


def _date_in(response: HttpResponse, header: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(response.headers.get(header, ""))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
