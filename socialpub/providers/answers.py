"""Reading what a network answered without trusting its form: a proxy may answer with HTML, or with nothing."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.errors import Unavailable
from socialpub.providers.http import Answer

SHOWN_CHARACTERS = 200


def members(answer: Answer) -> dict[str, Any]:
    """The JSON object of the answer; empty when it holds none."""
    try:
        found = answer.json()
    except Unavailable:
        return {}
    return found if isinstance(found, dict) else {}


def inner(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under `name`; empty when there is none."""
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def text(found: Mapping[str, Any], name: str) -> str | None:
    """The text under `name`, None when it is missing, empty or something else."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def whole(found: Mapping[str, Any], name: str) -> int | None:
    """The whole, positive number under `name`."""
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def seconds(answer: Answer, *headers: str) -> float | None:
    """The wait named by the first of these headers that holds a number of seconds."""
    for header in headers:
        value = answer.headers.get(header, "").strip()
        if value.isascii() and value.isdigit() and len(value) <= 9:
            return float(value)
    return None


def shown(message: str | None) -> str:
    """The network's own words, on one line and short enough for a message of ours."""
    words = " ".join((message or "").split())
    return words if len(words) <= SHOWN_CHARACTERS else words[: SHOWN_CHARACTERS - 1] + "…"
