"""What came back from a network, and reading it without trusting its form: a proxy may answer with HTML, or with
nothing.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from socialpub.core.secrets.redaction import redact
from socialpub.providers.errors import NoAnswer

SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole response. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON, whole numbers exact. Raises `NoAnswer` when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NoAnswer(f"The answer (HTTP {self.status}) could not be read.") from None


def json_object(response: HttpResponse) -> dict[str, Any]:
    """The JSON object in the body; empty when it holds none."""
    try:
        found = response.json()
    except NoAnswer:
        return {}
    return as_object(found)


def as_object(value: Any) -> dict[str, Any]:
    """A JSON value that should be an object; empty when it is none."""
    return value if isinstance(value, dict) else {}


def object_at(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under `name`; empty when there is none."""
    return as_object(found.get(name))


def text_at(found: Mapping[str, Any], name: str) -> str | None:
    """The text under `name`, None when it is missing, empty or something else."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def positive_int_at(found: Mapping[str, Any], name: str) -> int | None:
    """The whole, positive number under `name`."""
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def http_date(written: str | None) -> datetime | None:
    """The moment of an HTTP date, aware; None when it is none."""
    try:
        moment = parsedate_to_datetime(written or "")
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def retry_after_seconds(response: HttpResponse, now: datetime | None = None) -> float | None:
    """The wait that `Retry-After` names, in seconds or as a date; None when it names none.

    A date is counted from the answer's own `Date`, or from `now` where it has none. What is no wait at all (nought, a
    date that has passed) comes as it is named.
    """
    written = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"-?[0-9]{1,15}", written):
        return float(written)
    until, given_at = http_date(written), http_date(response.headers.get("date")) or now
    return None if until is None or given_at is None else (until - given_at).total_seconds()


def shortened(message: str | None, limit: int = SHOWN_CHARACTERS) -> str:
    """The network's own words, on one line, without secrets, and short enough for a message of ours."""
    # Redacted before it is cut: what is left of a secret would not be recognized.
    words = redact(" ".join((message or "").split()))
    return words if len(words) <= limit else words[: limit - 1] + "…"
