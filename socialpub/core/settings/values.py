"""The types of values in the configuration: durations, URLs, secrets, file names.

Values are strict (`"5"` is not 5). Error messages end a sentence that begins with the key.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, SecretStr

from socialpub.core import units

FOREVER = "forever"
NEVER = "never"
UNLIMITED = "unlimited"
OFF = "off"
NONE = timedelta(0)
MIN_KEPT = timedelta(days=7)
"""Idempotency, read-backs and backfill need rows for less than this time."""


class Section(BaseModel):
    # Defaults are validated because validators compare them with other keys.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True)


def _read_duration(value: Any) -> Any:
    if isinstance(value, str):
        return units.parse_duration(value)
    if isinstance(value, timedelta):
        return value
    raise ValueError("must be in quotes and have a unit, such as 90s, 15m, 24h or 90d")


def _duration_or(words: tuple[str, ...], min_duration: timedelta, too_short: str) -> Callable[[Any], Any]:
    """Return a validator that returns a duration, or None for one of the words."""

    def read(value: Any) -> Any:
        if value is None or value in words:
            return None
        duration = _read_duration(value)
        if duration < min_duration:
            raise ValueError(too_short)
        return duration

    return read


def _read_size_or_unlimited(value: Any) -> Any:
    return None if value == UNLIMITED else value


def read_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


HOST = re.compile(r"[a-z0-9][a-z0-9_.-]*|[0-9a-f:]+")


def read_network(text: str) -> str:
    """Return an IP address or a network in its usual form."""
    try:
        network = ip_network("" if "%" in text else text, strict=False)  # IP addresses are compared without their zone
    except ValueError:
        raise ValueError(f"{text[:60]!r} is neither an IP address nor a network") from None
    if "/" in text and str(network.network_address) != str(ip_network(text.partition("/")[0]).network_address):
        raise ValueError(f"{text!r} is an IP address inside a network; write {network}")
    return str(network) if "/" in text else str(network.network_address)


def _check_private_host(text: str) -> str:
    host = text.strip().lower().removesuffix(".")
    if HOST.fullmatch(host) and ":" not in host and not host.split(".")[-1].isdigit():
        return host
    try:
        return read_network(host)
    except ValueError as error:
        message = f"{text[:60]!r} is neither a host name nor an IP address nor a network"
        raise ValueError(str(error) if "/" in host and "://" not in host else message) from None


def _check_kept(value: timedelta | None) -> timedelta | None:
    if value is not None and value < MIN_KEPT:
        raise ValueError("must be at least 7d: the dashboard shows failures of the last week, and you can retry them")
    return value


def _trim(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _trim_each(value: Any) -> Any:
    return tuple(_trim(item) for item in value) if isinstance(value, list) else value


def is_secret(annotation: Any) -> bool:
    """Return whether this type is a secret or a list of secrets."""
    return annotation is SecretStr or get_args(annotation) == (SecretStr, Ellipsis)


def plain(value: Any) -> Any:
    """Return the value as plain text, numbers and lists, including secrets."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def check_url(value: str) -> str:
    """Return an absolute http(s) URL without user, query and fragment. Raise `ValueError`."""
    _check_address(value)
    if "?" in value or "#" in value:
        raise ValueError("must not have a query (?) or a fragment (#)")
    return value


def _check_redirect_url(value: str) -> str:
    if value:
        _check_address(value)
        if "#" in value:
            raise ValueError("must not have a fragment (#), because networks do not accept fragments")
    return value


def _check_address(value: str) -> None:
    if not value.isascii() or any(char <= " " or char in "\"'<>\\\x7f" for char in value):
        raise ValueError(
            "must be printable ASCII without spaces and quotes (write a host as xn--…, and percent-encode a path)"
        )
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password")
    if not parts.hostname:
        raise ValueError("must contain a host")
    if parts.port == 0:
        raise ValueError("must not have port 0, which does not accept connections")


Duration = Annotated[timedelta, BeforeValidator(_read_duration), Field(gt=NONE)]
Gap = Annotated[timedelta, BeforeValidator(_read_duration), Field(ge=NONE)]
DurationOrForever = Annotated[
    timedelta | None,
    BeforeValidator(_duration_or((FOREVER, "for ever"), timedelta.resolution, "must be longer than 0s")),
]
DurationOrNever = Annotated[
    timedelta | None,
    BeforeValidator(
        _duration_or((NEVER,), timedelta(minutes=1), "must be at least 1m: networks list new posts with a delay")
    ),
]
Kept = Annotated[DurationOrForever, AfterValidator(_check_kept)]
SizeOrUnlimited = Annotated[ByteSize | None, BeforeValidator(_read_size_or_unlimited)]
IntervalOrOff = Annotated[
    timedelta | None,
    BeforeValidator(
        _duration_or((OFF,), timedelta(hours=1), "must be at least 1h: every backup reads the whole database")
    ),
]
Secret = Annotated[SecretStr, BeforeValidator(_trim)]
SecretList = Annotated[tuple[SecretStr, ...], BeforeValidator(_trim_each)]
Trimmed = Annotated[str, BeforeValidator(_trim)]
Url = Annotated[str, AfterValidator(check_url)]
RedirectUrl = Annotated[str, BeforeValidator(_trim), AfterValidator(_check_redirect_url)]
BaseUrl = Annotated[str, AfterValidator(check_url), AfterValidator(lambda url: url.rstrip("/"))]
PrivateHosts = Annotated[tuple[Annotated[str, AfterValidator(_check_private_host)], ...], BeforeValidator(read_list)]
"""The form of `AllowedHosts.parse`."""
PRIVATE_HOSTS = 'a list of host names, IP addresses and networks, such as ["nas.lan", "192.168.1.0/24"]; [] for none'
A_DURATION = 'a duration above zero, such as "90s", "15m", "24h" or "90d"'
