"""Instants as a person reads them: in the time zone of the browser, with its name and the relative time.

The page's script sends the zone in a cookie. Before that, and without scripts, times are UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from markupsafe import Markup

from socialpub.core.clock import parse, stamp

LONGEST_NAME = 64

FIRST, SECOND = "first", "second"
"""Which of two is meant, where the clocks are set back and show a time twice."""

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


def written(instant: datetime, zone: tzinfo, *, with_zone: bool = True, seconds: bool = False) -> str:
    """`22 Nov 2026, 10:00 CET`, or with `seconds` `22 Nov 2026, 10:00:30 CET`."""
    shown = localized(instant, zone)
    text = f"{shown.day} {shown:%b %Y, %H:%M}{f':{shown:%S}' if seconds else ''}"
    return f"{text} {abbreviation(shown)}" if with_zone else text


def exactly(instant: datetime, zone: tzinfo) -> str:
    """`22 Nov 2026, 10:00:30 CET`: with the seconds, where there are some."""
    shown = localized(instant, zone)
    return f"{_date(shown)}, {_field_value(shown).partition('T')[2]} {abbreviation(shown)}"


def relative(instant: datetime, now: datetime) -> str:
    """`in 3 hours`, `2 days ago`, `now`."""
    distance = instant - now
    for unit, name in _UNITS:
        count = round(abs(distance) / unit)
        if count >= 1 and abs(distance) >= unit:
            amount = f"{count} {name}{'' if count == 1 else 's'}"
            return f"in {amount}" if distance > timedelta(0) else f"{amount} ago"
    return "now"


def element(text: str | None, zone: tzinfo, now: datetime, *, absent: str = "–", seconds: bool = False) -> Markup:
    """A stamp as a `time` element with the relative time behind it."""
    if text is None:
        return Markup(absent)  # noqa: S704  # a constant of the templates
    instant = parse(text)
    return Markup('<time datetime="{}">{} <small>{}</small></time>').format(
        stamp(instant), written(instant, zone, seconds=seconds), relative(instant, now)
    )


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A time by a zone's clock, and the instants at which that clock shows it.

    There is one instant, or none where the clocks are set forward, or two where they are set back.
    """

    local: datetime
    """Without a zone."""
    zone: tzinfo
    instants: tuple[datetime, ...]

    @property
    def is_skipped(self) -> bool:
        return not self.instants

    @property
    def is_repeated(self) -> bool:
        return len(self.instants) > 1

    def instant(self, which: str) -> datetime | None:
        """Return the instant. `which` (`FIRST`, `SECOND`) chooses where there are two. None: it chooses none."""
        if not self.is_repeated:
            return self.instants[0] if self.instants else None
        return dict(zip((FIRST, SECOND), self.instants, strict=True)).get(which)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Where there are two instants: each with its name, `02:30 CEST (UTC+2)`."""
        shown = [localized(one, self.zone) for one in self.instants]
        return [
            (
                which,
                f"{one:%H:%M} {abbreviation(one)}{'' if abbreviation(one) == _offset(one) else f' ({_offset(one)})'}",
            )
            for which, one in zip((FIRST, SECOND), shown, strict=False)
        ]

    @property
    def complaint(self) -> str:
        """Why the clock's time names no single instant, and what to do."""
        where = f"{self.local:%H:%M} on {_date(self.local)} in {zone_name(self.zone)}"
        if self.is_skipped:
            valid = localized(_change_of_clocks(self.local, self.zone), self.zone)
            date = "" if valid.date() == self.local.date() else f"{_date(valid)}, "
            return f"the clocks skip {where}. The next valid time is {date}{valid:%H:%M} {abbreviation(valid)}"
        names = " and at ".join(name for _, name in self.choices)
        return f"the clocks show {where} twice: at {names}. Choose one of them"


def read_local(text: str, zone: tzinfo) -> LocalTime | None:
    """Read the value of a field of the type `datetime-local`. None: it is no time."""
    try:
        local = datetime.fromisoformat(text)
        if local.tzinfo is not None:
            return None
        instants = [local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        shown = [instant.astimezone(zone).replace(tzinfo=None, fold=0) for instant in instants]
    except (ValueError, OverflowError):
        return None
    found = dict.fromkeys(instant for instant, again in zip(instants, shown, strict=True) if again == local)
    return LocalTime(local, zone, tuple(found))


def which_of(instant: datetime, zone: tzinfo) -> str:
    """Return which of two equal times by the zone's clock this instant is; empty where the time comes once."""
    local = read_local(localized(instant, zone).replace(tzinfo=None, fold=0).isoformat(), zone)
    names = (FIRST, SECOND) if local and local.is_repeated else ()
    return next((name for name in names if local and local.instant(name) == instant), "")


def _change_of_clocks(skipped: datetime, zone: tzinfo) -> datetime:
    """The instant at which the clocks are set forward over this time, to the second."""
    # Read by the offset after the change, the time lies before it; by the offset before, it lies behind it.
    before, behind = (skipped.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    offset = before.astimezone(zone).utcoffset()
    while behind - before > timedelta(seconds=1):
        middle = before + (behind - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            behind = middle
    return behind.replace(microsecond=0)


def abbreviation(shown: datetime) -> str:
    """Return the short name of the zone, `CET`, or `UTC+10:30` for a zone that has a number instead of a name."""
    name = shown.tzname() or ""
    return name if name[:1].isalpha() else _offset(shown)


def _offset(shown: datetime) -> str:
    """`UTC+2`, `UTC-3:30`."""
    minutes = round((shown.utcoffset() or timedelta()) / timedelta(minutes=1))
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


def _date(day: datetime) -> str:
    return f"{day.day} {day:%b %Y}"


def of_field(text: str, zone: tzinfo) -> datetime | None:
    """The instant that a field of the type `datetime-local` names in this zone; None when it is none.

    For filters, which take any time: one that the clocks skip counts by the clock before the change, and of one that
    comes twice the first is meant. A form that schedules reads with `read_local`.
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
    """A stamp as the value of such a field, to the minute."""
    return "" if text is None else f"{localized(parse(text), zone):%Y-%m-%dT%H:%M}"


def exact_for_field(text: str | None, zone: tzinfo) -> str:
    """A stamp as the value of such a field, with its seconds where it has some."""
    return "" if text is None else _field_value(localized(parse(text), zone))


def of_query(text: str, zone: tzinfo) -> tuple[str, str] | None:
    """The time that an address names (`?at=`, a stamp or a time in this zone), as the value of a field, and which of
    two equal times it is; None for a text that is neither."""
    try:
        if read_local(text, zone) is not None:
            return _field_value(datetime.fromisoformat(text)), ""
        instant = parse(text)
        return exact_for_field(stamp(instant), zone), which_of(instant, zone)
    except (ValueError, OverflowError):
        return None


def _field_value(shown: datetime) -> str:
    unit = "milliseconds" if shown.microsecond else "seconds" if shown.second else "minutes"
    return shown.replace(tzinfo=None).isoformat("T", unit)
