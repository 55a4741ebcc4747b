"""The sections of the configuration, and what each value may be.

Every key has a default and a `description`, the sentence that a wrong value is answered with. Values are strict (`"5"`
is not 5) and frozen; a key that depends on another one is compared with it here.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from socialpub.core import durations

MOST_VIDEO_BYTES = 157_286_400
"""No video may be larger, whatever the configuration says."""

FOR_EVER = "forever"
NONE = timedelta(0)


class Section(BaseModel):
    # Defaults are validated too: a comparison with another key must also happen when only that other key was given.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True)


# --- kinds of values -------------------------------------------------------------------------------------------------


def _read_duration(value: Any) -> Any:
    if isinstance(value, str):
        return durations.parse(value)
    if isinstance(value, timedelta):
        return value
    raise ValueError("a duration is written in quotes, with its unit, such as 90s, 15m, 24h or 90d")


def _read_duration_or_for_ever(value: Any) -> Any:
    if value is None or value in (FOR_EVER, "for ever"):
        return None
    duration = _read_duration(value)
    if duration == NONE:
        raise ValueError("must be longer than nothing")
    return duration


def _trim(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _read_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def check_url(value: str) -> str:
    """An absolute http(s) URL without user, query and fragment, as it was written. Raises `ValueError`."""
    if not value.isascii() or any(char <= " " or char in "\"'<>\\\x7f" for char in value):
        raise ValueError("only printable ASCII without spaces and quotes (a host as xn--…, a path percent-encoded)")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user name or password")
    if not parts.hostname:
        raise ValueError("names no host")
    if "?" in value or "#" in value:
        raise ValueError("must not have a query (?) or a fragment (#)")
    if parts.port == 0:
        raise ValueError("port 0 cannot be reached")
    return value


def _check_upload_host(host: str) -> str:
    host = host.lower()
    label = r"(?:\*|[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)"
    if not re.fullmatch(rf"{label}(?:\.{label})*", host) or host.split(".")[-1] == "*":
        raise ValueError(f"{host!r} is no host: no scheme, port or path; a * stands for one whole part, never the last")
    return host


Duration = Annotated[timedelta, BeforeValidator(_read_duration), Field(gt=NONE)]
Gap = Annotated[timedelta, BeforeValidator(_read_duration), Field(ge=NONE)]
Secret = Annotated[SecretStr, BeforeValidator(_trim)]
Trimmed = Annotated[str, BeforeValidator(_trim)]
Url = Annotated[str, AfterValidator(check_url)]
BaseUrl = Annotated[str, AfterValidator(check_url), AfterValidator(lambda url: url.rstrip("/"))]
UploadHosts = Annotated[
    tuple[Annotated[str, AfterValidator(_check_upload_host)], ...],
    BeforeValidator(_read_list),
]

A_DURATION = 'a duration above zero, such as "90s", "15m", "24h" or "90d"'
AN_API_URL = "an http(s) URL; the path may hold a version, no query"
A_CONSENT_PAGE = "an http(s) URL without a query"
HOSTS = 'a list of host names, such as ["upload.example.com"]; * stands for one part, a leading * for one or more'
FILE_INSTEAD = (
    "the name of a readable file, looked for in $CREDENTIALS_DIRECTORY, then beside the configuration; "
    "empty when the secret itself is given"
)
FROM_APP_PAGE = "the secret that the network shows on the app's page; empty when there is none"


# --- the networks ----------------------------------------------------------------------------------------------------


def _check_file_name(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9_-]+\.[a-z]{1,5}", name):
        raise ValueError("a file name without a folder, such as tiktokABC.txt")
    return name


class NetworkSection(Section):
    """One network's app credentials and addresses. Each network adds its own spelling of the app's id."""

    OWN_API_URL: ClassVar[str]
    ID_KEY: ClassVar[str] = "client_id"

    client_secret: Secret = Field(default=SecretStr(""), description=FROM_APP_PAGE)
    client_secret_file: Trimmed = Field(default="", description=FILE_INSTEAD)
    api_url: BaseUrl = Field(description=AN_API_URL)
    authorize_url: Url = Field(description=A_CONSENT_PAGE)
    upload_hosts: UploadHosts = Field(default=(), description=HOSTS)

    def missing_keys(self) -> list[str]:
        """Which of the keys that name the app are empty: without them no account can be connected."""
        named = {self.ID_KEY: getattr(self, self.ID_KEY), "client_secret": self.client_secret.get_secret_value()}
        return [key for key, value in named.items() if not value]

    def allows_upload_host(self, host: str) -> bool:
        """Whether bytes may be sent to `host` (a name without port), which the network named at run time.

        A leading `*.` stands for one or more parts, a `*` elsewhere for exactly one. The host of an `api_url` that
        was pointed elsewhere is allowed. Scheme and port of the URL are the caller's to check.
        """
        host = host.lower().rstrip(".").strip("[]")
        if self.api_url != self.OWN_API_URL and host == urlsplit(self.api_url).hostname:
            return True
        return any(_matches(pattern, host) for pattern in self.upload_hosts)


def _matches(pattern: str, host: str) -> bool:
    wanted, found = pattern.split("."), host.split(".")
    if wanted[0] == "*" and len(found) > len(wanted):
        found = found[len(found) - len(wanted) :]
    return len(wanted) == len(found) and all(w in ("*", f) and f for w, f in zip(wanted, found, strict=True))


class XSection(NetworkSection):
    OWN_API_URL = "https://api.x.com"

    client_id: Trimmed = Field(default="", description="the app's OAuth 2.0 client id, from console.x.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default="https://x.com/i/oauth2/authorize", description=A_CONSENT_PAGE)


class TikTokSection(NetworkSection):
    OWN_API_URL = "https://open.tiktokapis.com"
    ID_KEY = "client_key"

    client_key: Trimmed = Field(default="", description="the app's client key, from developers.tiktok.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default="https://www.tiktok.com/v2/auth/authorize/", description=A_CONSENT_PAGE)
    upload_hosts: UploadHosts = Field(
        default=("open-upload.tiktokapis.com", "upload.*.tiktokapis.com"),
        description=HOSTS,
    )
    pkce: bool = Field(default=True, description="true or false")
    verification_file: Annotated[str, AfterValidator(_check_file_name)] = Field(
        default="", description="the name of the file that TikTok gave for verifying a domain, such as tiktokABC.txt"
    )
    verification_content: Trimmed = Field(default="", description="what that file holds")


class PinterestSection(NetworkSection):
    OWN_API_URL = "https://api.pinterest.com/v5"

    client_id: Trimmed = Field(default="", description="the app id, from developers.pinterest.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default="https://www.pinterest.com/oauth/", description=A_CONSENT_PAGE)
    upload_hosts: UploadHosts = Field(default=("*.amazonaws.com",), description=HOSTS)


class ProvidersSection(Section):
    x: XSection = XSection()
    tiktok: TikTokSection = TikTokSection()
    pinterest: PinterestSection = PinterestSection()


# --- the rest --------------------------------------------------------------------------------------------------------


class PublishingSection(Section):
    max_lateness: Duration = Field(default=timedelta(hours=24), description=A_DURATION)
    give_up_after: Duration = Field(default=timedelta(hours=48), description=A_DURATION)
    min_gap: Gap = Field(default=NONE, description='a duration such as "0s", "90s" or "15m"')
    workers: int = Field(default=8, ge=1, le=64, description="a whole number from 1 to 64")


class UploadsSection(Section):
    """Limits go downwards only: the defaults are the promise of the API."""

    url_lifetime: Duration = Field(default=timedelta(hours=1), description=A_DURATION)
    reservation_lifetime: Duration = Field(
        default=timedelta(hours=24), description=f"{A_DURATION}, and not shorter than uploads.url_lifetime"
    )
    unreferenced_lifetime: Duration = Field(default=timedelta(days=30), description=A_DURATION)
    max_image_bytes: ByteSize = Field(
        default=ByteSize(32 << 20), ge=1, le=32 << 20, description='bytes or a size such as "16MiB", at most "32MiB"'
    )
    max_image_pixels: int = Field(
        default=100_000_000, ge=1, le=100_000_000, description="pixels of one frame, a whole number from 1 to 100000000"
    )
    max_image_total_pixels: int = Field(
        default=500_000_000,
        ge=1,
        le=500_000_000,
        description="pixels of all frames, a whole number from uploads.max_image_pixels to 500000000",
    )
    max_video_bytes: ByteSize = Field(
        default=ByteSize(MOST_VIDEO_BYTES),
        ge=1,
        le=MOST_VIDEO_BYTES,
        description=f'bytes or a size such as "100MB", at most {MOST_VIDEO_BYTES}',
    )

    @field_validator("reservation_lifetime")
    @classmethod
    def _outlives_its_url(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        url_lifetime = info.data.get("url_lifetime", NONE)
        if value < url_lifetime:
            raise ValueError(
                f"is shorter than uploads.url_lifetime ({durations.write(url_lifetime)}): "
                "an upload URL would outlive what it uploads to"
            )
        return value

    @field_validator("max_image_total_pixels")
    @classmethod
    def _holds_one_frame(cls, value: int, info: ValidationInfo) -> int:
        one_frame = info.data.get("max_image_pixels", 0)
        if value < one_frame:
            raise ValueError(f"is below uploads.max_image_pixels ({one_frame}): lower both")
        return value


class MediaSection(Section):
    url_lifetime: Duration = Field(default=timedelta(hours=1), description=A_DURATION)
    keep_after_settled: Annotated[timedelta | None, BeforeValidator(_read_duration_or_for_ever)] = Field(
        default=None, description=f'"{FOR_EVER}" or a duration such as "90d"'
    )


class RateLimitSection(Section):
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")
    failed_keys_per_minute: int = Field(default=30, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")


class MetricsSection(Section):
    token: Secret = Field(default=SecretStr(""), description="the Bearer token that /metrics asks for; empty: open")
    token_file: Trimmed = Field(default="", description=FILE_INSTEAD)


class HealthSection(Section):
    disk_floor_bytes: ByteSize = Field(default=ByteSize(500_000_000), description='bytes or a size such as "500MB"')


class LoggingSection(Section):
    format: Literal["human", "json"] = Field(default="human", description='"human" or "json"')
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description='"debug", "info", "warning" or "error"'
    )


class DatabaseSection(Section):
    busy_timeout: Duration = Field(default=timedelta(seconds=5), description=A_DURATION)
