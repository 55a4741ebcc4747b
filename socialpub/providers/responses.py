"""What comes back from a call to a network: a response that is read without trusting its form, or an error.

    ProviderError
      NotSent          nothing left this machine: try again
      NoAnswer         it left, no usable answer: it may have happened
      Throttled        refused for now, perhaps until a time that the network names
      AuthExpired      refresh, then ask the owner to reconnect
      Rejected         answered and refused
      AppRefused       answered and refused for the whole app: every post of this network meets the same

Messages are safe to show: they contain no token, no query string and no body. Secrets in use are removed here.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from socialpub.core.secrets.redaction import mask_value, redact

# --- how a call can fail ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ProviderError(Exception):
    """`message` may be shown to the owner. The network's support asks for `request_id`."""

    message: str
    code: str | None = field(default=None, kw_only=True)
    """The network's own."""
    request_id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.message, self.code, self.request_id = mask_value((self.message, self.code, self.request_id))
        super().__init__(self.message)


class NotSent(ProviderError):
    """Nothing left this machine (name not found, connection refused): the call certainly did not happen."""


class NoAnswer(ProviderError):
    """It left and no usable answer came (5xx, time-out, cut, unreadable): it may have happened."""


@dataclass(eq=False, kw_only=True)
class Throttled(ProviderError):
    """Refused for now (429)."""

    retry_after_seconds: float | None = None
    """As the network named it, never shortened; None: it named none."""
    steps: Set[str] = frozenset()
    """Steps of the same account that wait with the refused one."""


class AuthExpired(ProviderError):
    """The access token is not accepted (401): refresh once, else the owner must reconnect."""


class Reason(StrEnum):
    """The refusals that a network's own steps handle in a special way."""

    BUSY = "busy"
    """Something else writes to the same place."""
    DENIED = "denied"
    """The app may not read this account."""
    DUPLICATE = "duplicate"
    GONE = "gone"
    MEDIA_INVALID = "media-invalid"
    NOT_PERMITTED = "not-permitted"
    """The account, or this connection of it, may not use the place."""
    SCOPE_MISSING = "scope-missing"
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"
    """For what the account may post, which may have changed since its data was fetched."""
    OTHER = "other"


@dataclass(eq=False, kw_only=True)
class Rejected(ProviderError):
    """Answered and refused for good."""

    status: int = 0
    """Of HTTP."""
    reason: Reason = Reason.OTHER
    reauth: bool = False
    """The owner has to consent again. Without it, a refused OAuth refresh is a fault of the app's credentials, and the
    account's tokens are kept."""
    rest_seconds: float = 0.0
    """How long the account is left alone."""
    content: bool = False
    """The post itself was refused."""


class AppRefused(ProviderError):
    """Refused for the whole app (402, not approved, capped): hold the queue of the network and probe slowly."""


MAX_WAIT_SECONDS = 86400.0
"""A network that names a longer wait is asked again after a day."""
MAX_PLAUSIBLE_SECONDS = 366 * 86400.0


def plausible_wait(seconds: float | None) -> float | None:
    """Return the wait if it is plausible: not in milliseconds, in the past or decades long. None: it is not."""
    return seconds if seconds is not None and 0 < seconds <= MAX_PLAUSIBLE_SECONDS else None


def named_wait(error: ProviderError) -> float | None:
    """Return the seconds that a rate limit asks to wait. None: it names no plausible time."""
    return plausible_wait(error.retry_after_seconds) if isinstance(error, Throttled) else None


# --- responses --------------------------------------------------------------------------------------------------------
#
# A proxy may answer with HTML, or with nothing.

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
        """Return the body as JSON, whole numbers exact. Raises `NoAnswer` when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NoAnswer(f"The answer (HTTP {self.status}) could not be read.") from None


def json_object(response: HttpResponse) -> dict[str, Any]:
    """Return the JSON object in the body; empty when it holds none."""
    try:
        return as_object(response.json())
    except NoAnswer:
        return {}


def as_object(value: Any) -> dict[str, Any]:
    """Return a JSON value that should be an object; empty when it is none."""
    return value if isinstance(value, dict) else {}


def object_at(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return as_object(found.get(name))


def text_at(found: Mapping[str, Any], name: str) -> str | None:
    """Return the text under `name`, None when it is missing, empty or something else."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def positive_int_at(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def http_date(written: str | None) -> datetime | None:
    """Return the moment of an HTTP date, aware; None when it is none."""
    try:
        moment = parsedate_to_datetime(written or "")
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def retry_after_seconds(response: HttpResponse, now: datetime | None = None) -> float | None:
    """Return the wait that `Retry-After` names, in seconds or as a date; None when it names none.

    A date is counted from the answer's own `Date`, or from `now` where it has none. The result may be zero or less.
    """
    written = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"-?[0-9]{1,15}", written):
        return float(written)
    until, given_at = http_date(written), http_date(response.headers.get("date")) or now
    return None if until is None or given_at is None else (until - given_at).total_seconds()


def shortened(message: str | None, limit: int = SHOWN_CHARACTERS) -> str:
    """Return the network's own words on one line, without secrets, and short enough for a message of ours."""
    # Redacted before it is cut: what is left of a secret would not be recognized.
    words = redact(" ".join((message or "").split()))
    return words if len(words) <= limit else words[: limit - 1] + "…"
