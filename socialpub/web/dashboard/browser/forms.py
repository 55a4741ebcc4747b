"""Read forms, queries and list filters.

Each field is text. A checkbox that is not ticked is absent.
"""

import contextlib
from collections.abc import Collection, Sequence
from datetime import timedelta, tzinfo
from urllib.parse import parse_qsl, urlencode

from pydantic_core import PydanticCustomError

from socialpub.core.clock import stamp
from socialpub.core.errors import InvalidRequest
from socialpub.web.dashboard.browser import times
from socialpub.web.http.shapes import read_instant

URLENCODED = "application/x-www-form-urlencoded"
MAX_FIELDS = 1000
MAX_ADDRESS_LETTERS = 2000
MAX_QUOTED_LETTERS = 40
_REST_OF_MINUTE = timedelta(seconds=59, milliseconds=999)
"""The rest of a minute, because a field does not contain seconds. The last minute of a period belongs to the period."""


class Form:
    """The fields in order. A name can occur several times."""

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self.fields = tuple(fields)

    @classmethod
    def read(cls, body: bytes) -> "Form":
        try:
            text = body.decode("ascii")
            return cls(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
        except ValueError:
            raise InvalidRequest.at(message="This form is not valid. Reload the page and try again.") from None

    def text(self, name: str) -> str:
        """Return the last value with this name, with Unix line ends."""
        texts = self.texts(name)
        return texts[-1] if texts else ""

    def texts(self, name: str) -> list[str]:
        return [value.replace("\r\n", "\n") for key, value in self.fields if key == name]

    def number(self, name: str, max_digits: int = 7) -> int | None:
        """Return the whole number in the field. None: the field contains another text."""
        text = self.text(name).strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= max_digits else None

    def ticked(self, name: str) -> bool:
        return bool(self.texts(name))


def field_errors(error: InvalidRequest) -> dict[str, str]:
    """Return the error message of each wrong field."""
    return {str(item.path[0]): item.sentence for item in error.errors if item.path}


def local_path(path: str, default: str) -> str:
    """Return the path if it is a path of the dashboard, otherwise the default."""
    misleading = "//" in path or "\\" in path or not path.isprintable() or len(path) > MAX_ADDRESS_LETTERS
    return path if path.startswith("/") and not misleading else default


class ListFilter:
    """The filter of a list from its URL: `?network=x&from=2026-11-01`.

    A wrong value is reported at its field and ignored. By field name: `shown` has the values of fields, `several` the
    values of fields with several values, `errors` the messages.
    """

    def __init__(self, query: Form, zone: tzinfo) -> None:
        self.query, self.zone = query, zone
        self.shown: dict[str, str] = {}
        self.several: dict[str, tuple[str, ...]] = {}
        self.errors: dict[str, str] = {}

    @property
    def any(self) -> bool:
        return any(self.shown.values()) or any(self.several.values())

    def address(self, path: str, **more: object) -> str:
        """Return the URL of this list with another path or with more values."""
        right = {name: value for name, value in self.shown.items() if value and name not in self.errors}
        fields = {name: value for name, value in {**right, **self.several, **more}.items() if value}
        return f"{path}?{urlencode(fields, doseq=True)}" if fields else path

    def text(self, name: str, max_letters: int | None = None) -> str | None:
        self.shown[name] = self.query.text(name).strip()[:max_letters]
        return self.shown[name] or None

    def choice(self, name: str, known: Collection[str], what: str = "") -> str | None:
        """Read one of the known values. `what` is the kind of value if there are too many to list."""
        text = self.text(name)
        if text is None or text in known:
            return text
        reason = f"is not a known {what}" if what else f"is not one of {', '.join(known)}"
        self.errors[name] = f"“{text[:MAX_QUOTED_LETTERS]}” {reason}."
        return None

    def choices(self, name: str, known: Collection[str], what: str) -> tuple[str, ...]:
        chosen = [choice for text in self.query.texts(name) for choice in text.split(",") if choice]
        for unknown in chosen:
            if unknown not in known:
                self.errors[name] = f"“{unknown[:MAX_QUOTED_LETTERS]}” is not a known {what}."
                break
        self.several[name] = tuple(dict.fromkeys(choice for choice in chosen if choice in known))
        return self.several[name]

    def day(self, name: str, *, end: bool = False) -> str | None:
        text = self.text(name)
        instant = times.read_day(text, self.zone, end=end) if text else None
        if text and instant is None:
            self.errors[name] = "This is not a date. Write it like 2026-11-30."
        return None if instant is None else stamp(instant)

    def instant(self, name: str, *, end: bool = False) -> str | None:
        text = self.text(name)
        if text is None:
            return None
        instant = times.read_time(text, self.zone)
        if instant is not None and end:
            instant += _REST_OF_MINUTE
        if instant is None:
            with contextlib.suppress(PydanticCustomError):
                instant = read_instant(text)
        if instant is None:
            quoted = f"“{text[:MAX_QUOTED_LETTERS]}”"
            self.errors[name] = f"{quoted} is not a date and time. Write it like 2026-11-25T09:00."
            return None
        self.shown[name] = f"{times.to_local(instant, self.zone):%Y-%m-%dT%H:%M}"
        return stamp(instant)
