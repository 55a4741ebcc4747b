"""What came back from a network, and reading it without trusting its form: a proxy may answer with HTML, or with
nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def seconds_in_header(response: HttpResponse, *headers: str) -> float | None:
    """The wait named by the first of these headers that holds a number of seconds."""
    for header in headers:
        value = response.headers.get(header, "").strip()
        if value.isascii() and value.isdigit() and len(value) <= 9:
            return float(value)
    return None


def shortened(message: str | None, most: int = SHOWN_CHARACTERS) -> str:
    """The network's own words, on one line and short enough for a message of ours."""
    words = " ".join((message or "").split())
    return words if len(words) <= most else words[: most - 1] + "…"
