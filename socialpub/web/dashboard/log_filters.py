"""What the address of `/log` and `/log.csv` asks for: `?network=x&type=failed&from=2026-11-01`.

Without a type the page shows outcomes, and the file holds every entry.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import urlencode

from socialpub.core.clock import stamp
from socialpub.db.log_lists import TYPES, LogFilter
from socialpub.web.dashboard import times
from socialpub.web.dashboard.forms import Form

ALL = "all"
"""The type of every entry."""
NAMES = ("network", "profile", "type", "from", "to", "search")
PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class ShownFilter:
    """`shown` is what stands in the form, `errors` what is wrong with it, both by the fields' names. What is wrong is
    left out of `query`."""

    query: LogFilter
    shown: dict[str, str]
    errors: dict[str, str]

    @property
    def any(self) -> bool:
        return any(self.shown.values())

    def address(self, path: str, **more: object) -> str:
        """This filter at another path."""
        values = {name: value for name, value in self.shown.items() if value} | more
        return f"{path}?{urlencode(values)}" if values else path


def read(form: Form, zone: tzinfo, networks: Collection[str], profiles: Collection[str], *, whole: bool) -> ShownFilter:
    """Days are those of the browser's zone. `whole`: without a type, every entry is meant."""
    shown = {name: form.text(name).strip() for name in NAMES}
    errors = {}
    for name, known in (("network", networks), ("profile", profiles), ("type", (*TYPES, ALL))):
        if shown[name] and shown[name] not in known:
            errors[name] = "Choose one of the list."
    since, until = times.of_date(shown["from"], zone), times.of_date(shown["to"], zone, end=True)
    for name, found in (("from", since), ("to", until)):
        if shown[name] and found is None:
            errors[name] = "This is no date, such as 2026-11-30."
    given = {name: value for name, value in shown.items() if value and name not in errors}
    query = LogFilter(
        given.get("network"),
        given.get("profile"),
        None if given.get("type") == ALL else given.get("type"),
        not whole and "type" not in given,
        None if since is None else stamp(since),
        None if until is None else stamp(until),
        given.get("search"),
        form.number("below", most_digits=15),
        PER_PAGE,
    )
    return ShownFilter(query, shown, errors)
