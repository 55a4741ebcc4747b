"""Instants as a person reads them: in the time zone of the browser, with its name, and how far away they are.

The browser tells its zone in a cookie that the page's script sets; before that, and without scripts, times are UTC.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from markupsafe import Markup

from socialpub.core.clock import parse, stamp

LONGEST_NAME = 64

_UNITS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
)


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo:
    """The zone of this name (`Europe/Berlin`); UTC for one that is not known."""
    if not name or len(name) > LONGEST_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


def is_zone(name: str) -> bool:
    """Whether there is a zone of this name."""
    return name == "UTC" or zone_named(name) is not UTC


def zone_name(zone: tzinfo) -> str:
    return getattr(zone, "key", "UTC")


def localized(instant: datetime, zone: tzinfo) -> datetime:
    """The instant by this zone's clock; on the last and first day that can be written down, by that of UTC."""
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant.astimezone(UTC)


def written(instant: datetime, zone: tzinfo, *, with_zone: bool = True) -> str:
    """`22 Nov 2026, 10:00 CET`."""
    shown = localized(instant, zone)
    text = f"{shown.day} {shown:%b %Y, %H:%M}"
    return f"{text} {shown.tzname()}" if with_zone else text


def relative(instant: datetime, now: datetime) -> str:
    """`in 3 hours`, `2 days ago`, `now`."""
    distance = instant - now
    for unit, name in _UNITS:
        count = round(abs(distance) / unit)
        if count >= 1 and abs(distance) >= unit:
            amount = f"{count} {name}{'' if count == 1 else 's'}"
            return f"in {amount}" if distance > timedelta(0) else f"{amount} ago"
    return "now"


def element(text: str | None, zone: tzinfo, now: datetime, *, absent: str = "–") -> Markup:
    """A stamp as a `time` element with the relative time behind it."""
    if text is None:
        return Markup(absent)  # noqa: S704  # a constant of the templates
    instant = parse(text)
    return Markup('<time datetime="{}">{} <small>{}</small></time>').format(
        stamp(instant), written(instant, zone), relative(instant, now)
    )


def of_field(text: str, zone: tzinfo) -> datetime | None:
    """The instant that a field of the type `datetime-local` names in this zone; None when it is none.

    An hour that a change of clocks skips counts as the same moment by the clock before the change; of one that comes
    twice the first is meant.
    """
    try:
        local = datetime.fromisoformat(text)
        return None if local.tzinfo is not None else local.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def of_date(text: str, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """When the day that a field of the type `date` names begins in this zone, or ends; None when it is none."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d") + timedelta(days=1 if end else 0)
        return day.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def for_field(text: str | None, zone: tzinfo) -> str:
    """A stamp as the value of such a field."""
    return "" if text is None else f"{localized(parse(text), zone):%Y-%m-%dT%H:%M}"


def of_query(text: str, zone: tzinfo) -> str | None:
    """The stamp that an address names (`?at=`): a stamp, or a time in this zone; None for a text that is neither."""
    instant = of_field(text, zone)
    try:
        return stamp(instant) if instant is not None else stamp(parse(text))
    except (ValueError, OverflowError):
        return None
