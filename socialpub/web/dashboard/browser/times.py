"""Show and read times in the time zone of the browser.

The page's script sends the zone in a cookie. Before that, and without scripts, times are in UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from markupsafe import Markup

from socialpub.core.clock import parse, stamp

MAX_ZONE_LETTERS = 64

FIRST, SECOND = "first", "second"
"""The choices of one of two instants if the clock shows a time twice."""

_UNITS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
)


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Return the zone with this name, or UTC for an unknown name."""
    if not name or len(name) > MAX_ZONE_LETTERS:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


def is_zone(name: str) -> bool:
    return name == "UTC" or find_zone(name) is not UTC


def zone_name(zone: tzinfo) -> str:
    return getattr(zone, "key", "UTC")


def to_local(instant: datetime, zone: tzinfo) -> datetime:
    """Return the instant in this zone, or in UTC if the zone is out of range of a date."""
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant.astimezone(UTC)


def format_time(instant: datetime, zone: tzinfo, *, seconds: bool = False) -> str:
    """Return `22 Nov 2026, 10:00 CET`, or with `seconds` `22 Nov 2026, 10:00:30 CET`."""
    local = to_local(instant, zone)
    return f"{_date(local)}, {local:%H:%M}{f':{local:%S}' if seconds else ''} {zone_abbreviation(local)}"


def format_exactly(instant: datetime, zone: tzinfo) -> str:
    """Return `22 Nov 2026, 10:00:30 CET`. Seconds are left out if they are zero."""
    local = to_local(instant, zone)
    return f"{_date(local)}, {_field_value(local).partition('T')[2]} {zone_abbreviation(local)}"


def _relative(instant: datetime, now: datetime) -> str:
    """Return `in 3 hours`, `2 days ago`, `now`."""
    distance = instant - now
    for unit, name in _UNITS:
        count = round(abs(distance) / unit)
        if count >= 1 and abs(distance) >= unit:
            amount = f"{count} {name}{'' if count == 1 else 's'}"
            return f"in {amount}" if distance > timedelta(0) else f"{amount} ago"
    return "now"


def time_element(text: str | None, zone: tzinfo, now: datetime, *, absent: str = "–", seconds: bool = False) -> Markup:
    if text is None:
        return Markup(absent)  # noqa: S704  # a constant of the templates
    instant = parse(text)
    return Markup('<time datetime="{}">{} <small>{}</small></time>').format(
        stamp(instant), format_time(instant, zone, seconds=seconds), _relative(instant, now)
    )


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A local time, and the instants at which the clock shows it.

    There is one instant, none if the clock skips the time, or two if the clock repeats it.
    """

    local: datetime
    zone: tzinfo
    instants: tuple[datetime, ...]

    @property
    def is_skipped(self) -> bool:
        return not self.instants

    @property
    def is_repeated(self) -> bool:
        return len(self.instants) > 1

    def instant(self, which: str) -> datetime | None:
        """Return the instant. For a repeated time, `which` must be `FIRST` or `SECOND`."""
        if not self.is_repeated:
            return self.instants[0] if self.instants else None
        return dict(zip((FIRST, SECOND), self.instants, strict=True)).get(which)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """`FIRST` and `SECOND` with their names, `02:30 CEST (UTC+2)`."""
        choices = []
        for which, instant in zip((FIRST, SECOND), self.instants, strict=False):
            local = to_local(instant, self.zone)
            zone, offset = zone_abbreviation(local), _offset(local)
            choices.append((which, f"{local:%H:%M} {zone}" if zone == offset else f"{local:%H:%M} {zone} ({offset})"))
        return choices

    @property
    def problem(self) -> str:
        """The reason why the time is not a single instant, and the remedy."""
        where = f"{self.local:%H:%M} on {_date(self.local)} in {zone_name(self.zone)}"
        if self.is_skipped:
            valid = to_local(_change_of_clocks(self.local, self.zone), self.zone)
            date = "" if valid.date() == self.local.date() else f"{_date(valid)}, "
            return f"the clocks skip {where}. The next valid time is {date}{valid:%H:%M} {zone_abbreviation(valid)}"
        names = " and at ".join(name for _, name in self.choices)
        return f"the clocks show {where} twice: at {names}. Choose one of them"


def read_local(text: str, zone: tzinfo) -> LocalTime | None:
    """Read the value of a `datetime-local` field. None: the text is not a time."""
    try:
        local = datetime.fromisoformat(text)
        if local.tzinfo is not None:
            return None
        instants = [local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        locals_again = [instant.astimezone(zone).replace(tzinfo=None, fold=0) for instant in instants]
    except (ValueError, OverflowError):
        return None
    candidates = dict.fromkeys(instant for instant, again in zip(instants, locals_again, strict=True) if again == local)
    return LocalTime(local, zone, tuple(candidates))


def which_time(instant: datetime, zone: tzinfo) -> str:
    """Return `FIRST` or `SECOND` for a time that the clock shows twice, otherwise an empty text."""
    local = read_local(to_local(instant, zone).replace(tzinfo=None, fold=0).isoformat(), zone)
    names = (FIRST, SECOND) if local and local.is_repeated else ()
    return next((name for name in names if local and local.instant(name) == instant), "")


def _change_of_clocks(skipped: datetime, zone: tzinfo) -> datetime:
    """Return the instant at which the clock skips this time."""
    # The offset after the change gives an instant before the change, and the other way round.
    before, behind = (skipped.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    offset = before.astimezone(zone).utcoffset()
    while behind - before > timedelta(seconds=1):
        middle = before + (behind - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            behind = middle
    return behind.replace(microsecond=0)


def zone_abbreviation(shown: datetime) -> str:
    """Return `CET`, or `UTC+10:30` for a zone without letters."""
    name = shown.tzname() or ""
    return name if name[:1].isalpha() else _offset(shown)


def _offset(shown: datetime) -> str:
    """Return `UTC+2`, `UTC-3:30`."""
    minutes = round((shown.utcoffset() or timedelta()) / timedelta(minutes=1))
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


def _date(day: datetime) -> str:
    return f"{day.day} {day:%b %Y}"


def read_time(text: str, zone: tzinfo) -> datetime | None:
    """Read the `datetime-local` field of a filter. None: the text is not a time.

    A skipped time uses the offset before the change. A repeated time is the first one.
    """
    candidates = read_local(text, zone)
    return None if candidates is None else candidates.local.replace(tzinfo=zone).astimezone(UTC)


def read_day(text: str, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """Return the start or the end of the day in a `date` field. None: the text is not a date."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d") + timedelta(days=1 if end else 0)
        return day.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def field_value(text: str | None, zone: tzinfo) -> str:
    return "" if text is None else _field_value(to_local(parse(text), zone))


def read_query_time(text: str, zone: tzinfo) -> tuple[str, str] | None:
    """Return the field value and `which_time` of a time in a URL. None: the text is not a time."""
    try:
        if read_local(text, zone) is not None:
            return _field_value(datetime.fromisoformat(text)), ""
        instant = parse(text)
        return field_value(stamp(instant), zone), which_time(instant, zone)
    except (ValueError, OverflowError):
        return None


def _field_value(shown: datetime) -> str:
    unit = "milliseconds" if shown.microsecond else "seconds" if shown.second else "minutes"
    return shown.replace(tzinfo=None).isoformat("T", unit)
