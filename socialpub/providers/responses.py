"""The result of a call to a network: a response, or an error.

    ProviderError
      NotSent          nothing left this host: try again
      NoAnswer         sent, no usable response: it may have happened
      Throttled        refused for now, perhaps until a time in the response
      AuthExpired      refresh, then ask the owner to reconnect
      Rejected         refused
      AppRefused       refused for the whole app, so for every post of this network

The form of a response is never trusted. Messages are safe to show: they contain no token, query string or body.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from socialpub.core.secrets.redaction import MASK, mask_value, redact
from socialpub.core.validation import to_label

# --- how a call can fail ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ProviderError(Exception):
    """A failed call. `message` is for the owner, `request_id` for the network's support."""

    message: str
    code: str | None = field(default=None, kw_only=True)
    """The network's own code."""
    request_id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        texts = storable((self.message, self.code, self.request_id))
        self.message, self.code, self.request_id = mask_value(texts)
        super().__init__(self.message)


class NotSent(ProviderError):
    """Nothing left this host (name not found, connection refused), so the call definitely had no effect."""


@dataclass(eq=False, kw_only=True)
class NoAnswer(ProviderError):
    """The call was sent without a usable response (5xx, timeout, cut, unreadable), so it may have had its effect."""

    refuses: bool = False
    """A 4xx that is not in the network's own form refuses the call in words. After hours, it ends an unsent post."""


@dataclass(eq=False, kw_only=True)
class Throttled(ProviderError):
    """Refused for now (429)."""

    retry_after_seconds: float | None = None
    """The wait in the network's response, never shortened. None: the response does not contain a wait."""
    steps: Set[str] = frozenset()
    """Steps of the same account that wait with the refused step."""


class AuthExpired(ProviderError):
    """The network refused the access token (401): refresh once, else the owner must reconnect."""


class Reason(StrEnum):
    """The refusals that the steps of a network handle in a special way."""

    BUSY = "busy"
    """Another call writes to the same board."""
    DENIED = "denied"
    """The app may not read this account."""
    DUPLICATE = "duplicate"
    GONE = "gone"
    MEDIA_INVALID = "media-invalid"
    NOT_PERMITTED = "not-permitted"
    """The account or its connection may not use the board."""
    PARENT_MISSING = "parent-missing"
    """The post to which the post replies is deleted or not visible."""
    SCOPE_MISSING = "scope-missing"
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"
    """The account's limit may have changed since its data was fetched."""
    OTHER = "other"


@dataclass(eq=False, kw_only=True)
class Rejected(ProviderError):
    """The network refused the call."""

    status: int = 0
    """The HTTP status."""
    reason: Reason = Reason.OTHER
    reauth: bool = False
    """The owner must consent again. If False, a refused refresh means wrong app credentials, and the account's tokens
    are kept."""
    rest_seconds: float = 0.0
    """How long the account is paused."""
    content: bool = False
    """The post itself was refused."""


class AppRefused(ProviderError):
    """The network refused the whole app (402, not approved, capped): hold the network and probe slowly."""


MAX_WAIT_SECONDS = 86400.0
"""After a longer wait, the network is asked again after a day."""
MAX_PLAUSIBLE_SECONDS = 366 * 86400.0


def plausible_wait(seconds: float | None) -> float | None:
    """Return the wait, or None if it is implausible: in milliseconds, in the past or decades long."""
    return seconds if seconds is not None and 0 < seconds <= MAX_PLAUSIBLE_SECONDS else None


def named_wait(error: ProviderError) -> float | None:
    return plausible_wait(error.retry_after_seconds) if isinstance(error, Throttled) else None


# --- responses --------------------------------------------------------------------------------------------------------

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
        """Return the body as `parse_json` does. Raises `NoAnswer` for any other body."""
        try:
            return parse_json(self.body)
        except (ValueError, RecursionError):
            raise NoAnswer(f"The response (HTTP {self.status}) could not be read{quote_words(self)}.") from None


_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
"""NUL and the halves of a surrogate pair: SQLite or UTF-8 does not accept them in a text."""
_MAX_NUMBER = 10**40
"""No id and no amount is larger. A float cannot represent every larger number."""


def storable(value: Any) -> Any:
    """Return the value with U+FFFD for characters that cannot be stored and None for absurd numbers, at all levels."""
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case int() | float():
            return value if -_MAX_NUMBER < value < _MAX_NUMBER else None
        case dict():
            return {storable(name): storable(inner) for name, inner in value.items()}
        case list() | tuple():
            return type(value)(map(storable, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{member.name: storable(getattr(value, member.name)) for member in fields(value)})
        case _:
            return value


def parse_json(text: str | bytes) -> Any:
    """Return a network's JSON, `storable` and with exact integers. Raises ValueError and RecursionError."""
    return storable(json.loads(text))


def json_object(response: HttpResponse) -> dict[str, Any]:
    try:
        return as_object(response.json())
    except NoAnswer:
        return {}


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def object_at(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return as_object(found.get(name))


def text_at(found: Mapping[str, Any], name: str) -> str | None:
    """Return the text under `name`, or None if the value is missing, empty or not a text."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def label_at(found: Mapping[str, Any], name: str) -> str | None:
    """Return the text under `name` as a label, or None."""
    return to_label(text_at(found, name) or "") or None


_MAX_INTEGER = 2**63 - 1
"""The largest number of SQLite."""


def positive_int_at(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_INTEGER else None


MAX_LIFETIME_SECONDS = 10 * 366 * 86400


def read_lifetime(seconds: object) -> int | None:
    """Return a lifetime in whole seconds, or None for a value that cannot be one: not positive, or above ten years."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return int(seconds) if 1 <= seconds <= MAX_LIFETIME_SECONDS else None


_PLAUSIBLE_YEARS = range(1970, 3000)
"""Dates in other years overflow when a wait or an offset is added."""


def http_date(written: str | None) -> datetime | None:
    """Return the aware time of an HTTP date, or None for any other text and any other year."""
    try:
        moment = parsedate_to_datetime(written or "")
    except (ValueError, OverflowError):
        return None
    if moment.year not in _PLAUSIBLE_YEARS:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def retry_after_seconds(response: HttpResponse, now: datetime | None = None) -> float | None:
    """Return the wait of `Retry-After`, which is seconds or a date. None: no such header.

    A date counts from the response's own `Date`, or else from `now`. The result may be zero or negative.
    """
    written = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"-?[0-9]{1,15}", written):
        return float(written)
    until, given_at = http_date(written), http_date(response.headers.get("date")) or now
    return None if until is None or given_at is None else (until - given_at).total_seconds()


QUOTED_CHARACTERS = 100
_HTML = re.compile(r"<(?!\?xml)|<\?xml.{0,999}<html", re.IGNORECASE | re.DOTALL)
_LONG_WORD = re.compile(r"[\w\-+/=%.]{48,}")
"""A token, perhaps."""
_PASSING_STATUSES = frozenset({401, 407, 408, 425, 429})
"""The 4xx that do not refuse a call for good."""


def read_words(response: HttpResponse) -> str | None:
    """Return the first printable characters of a body, without secrets. None: the body is empty or HTML."""
    text = response.body[: 100 * QUOTED_CHARACTERS].decode(errors="replace").lstrip("\ufeff \t\r\n")
    if "html" in response.headers.get("content-type", "").lower() or _HTML.match(text):
        return None
    visible = "".join(character if character.isprintable() else " " for character in text)
    return shortened(hide_long_words(redact(visible)), QUOTED_CHARACTERS) or None


def hide_long_words(text: str) -> str:
    """Return the text without words that are perhaps tokens."""
    return _LONG_WORD.sub(MASK, text)


def quote_words(response: HttpResponse) -> str:
    words = read_words(response)
    return "" if words is None else f': "{words}"'


def foreign_answer(response: HttpResponse, who: str, request_id: str | None = None) -> NoAnswer:
    """Return the error for a response that is not in the form of `who`."""
    status, words = response.status, quote_words(response)
    is_markup = response.body.lstrip().startswith(b"<")
    return NoAnswer(
        f"A proxy or CDN answered instead of {who} (HTTP {status}){words}.",
        code=str(status),
        request_id=request_id,
        refuses=400 <= status < 500 and status not in _PASSING_STATUSES and bool(words) and not is_markup,
    )


def shortened(message: str | None, limit: int = SHOWN_CHARACTERS) -> str:
    """Return a network's message on one line, without secrets, and short enough for our messages."""
    # Redact before the cut: the rest of a cut secret would not be recognized.
    words = redact(" ".join((message or "").split()))
    return words if len(words) <= limit else words[: limit - 1] + "…"
