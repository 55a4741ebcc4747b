"""The sections of the configuration and their accepted values.

Every key has a default and a `description` of the accepted values, which messages quote. Values are frozen. Validators
compare keys that depend on each other.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, SecretStr

from socialpub.core import units
from socialpub.core.settings.networks import BlueskySection, PinterestSection, TikTokSection, XSection
from socialpub.core.settings.values import (
    A_DURATION,
    FOREVER,
    HOST,
    NEVER,
    NONE,
    OFF,
    PRIVATE_HOSTS,
    UNLIMITED,
    Duration,
    DurationOrForever,
    DurationOrNever,
    Gap,
    IntervalOrOff,
    Kept,
    PrivateHosts,
    Secret,
    SecretList,
    Section,
    SizeOrUnlimited,
    Trimmed,
    empty,
    read_list,
    read_network,
)


class AlertKind(StrEnum):
    ACCOUNT = "account"
    """The owner must connect an account again, now or within a week."""

    DELIVERY = "delivery"
    """A delivery failed, or its outcome is unknown."""

    APPROVAL = "approval"
    """A post waits for the owner's approval."""

    DRAFT = "draft"
    """A draft arrived in the network's app, and the owner must publish the draft."""

    NETWORK = "network"
    """A network rejects the whole app."""

    WORKER = "worker"
    """Deliveries are overdue, or the worker does not report or fails at a periodic task every time."""

    DISK = "disk"
    """The disk has little or no free space."""

    WEBHOOK = "webhook"
    """A webhook has not accepted events for an hour, or answered that it is gone."""

    BACKUP = "backup"
    """The last backup is old or failed."""

    CLOCK = "clock"
    """The clock was set."""

    PAUSED = "paused"
    """Publishing has been paused for a long time, including pauses after a restore."""


UNIX = "unix"
"""All callers that connect through a socket in the file system."""


def _check_proxy(text: str) -> str:
    text = text.strip()
    return text if text == UNIX else read_network(text)


class ProxiesSection(Section):
    trusted: Annotated[tuple[Annotated[str, AfterValidator(_check_proxy)], ...], BeforeValidator(read_list)] = Field(
        default=("127.0.0.1", "::1"),
        description='a list of IP addresses, networks and "unix" (a socket in the file system), such as '
        '["127.0.0.1", "172.16.0.0/12"]; [] for none',
    )


_WITH_HOST = (
    "apprise bark emby enigma2 evolution form gorush gotify growl hassio humhub irc jellyfin json kodi mailgun "
    "mailto mastodon misskey mmost mqtt ncloud nctalk onebot parsep pjet rocket rsyslog signal smseagle "
    "synology toot xbmc xml xmpp"
)
HOSTED = frozenset(f"{name}{secure}" for name in _WITH_HOST.split() for secure in ("", "s"))
"""Schemes whose URLs always contain a host. Most other schemes have a secret token in its place."""
HOSTED_WITH_PATH = frozenset(("matrix", "matrixs", "ntfy", "ntfys"))
"""Schemes whose URLs contain a host if they have a path. Otherwise, they contain a topic or a token."""
LOCAL = frozenset(("dbus", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"))
"""Schemes of a desktop or a log, which do not need further text."""

EXAMPLES = "mailto://…, ntfy://…, tgram://… or json://…"


def url_scheme(url: str) -> str:
    """Return the text before ://, or an empty text if `url` is not a URL."""
    service, mark, rest = url.partition("://")
    return service.lower() if mark and rest.strip() and service.isascii() and service.isalnum() else ""


def display_url(url: str) -> str:
    """Return the scheme and the host of a URL, `ntfys://ntfy.example.com`, without the host if it could be a secret."""
    scheme = url_scheme(url)
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{scheme}://"
    is_hosted = scheme in HOSTED or (scheme in HOSTED_WITH_PATH and parts.path.strip("/"))
    # A name without a dot or a port can be half of an unescaped user name.
    if is_hosted and HOST.fullmatch(host) and (port or "." in host or ":" in host or host == "localhost"):
        return f"{scheme}://[{host}]" if ":" in host else f"{scheme}://{host}"
    return f"{scheme}://"


def check_form(url: str) -> str | None:
    """Return the end of a sentence about a malformed URL, or None."""
    scheme, mark, rest = url.strip().partition("://")
    if mark and not rest.strip() and scheme.lower() in LOCAL:
        return "is a service of this machine, which socialpub does not support"
    if mark and not rest.strip() and scheme.isascii() and scheme.isalnum():
        return f"is not complete: text is missing after {scheme.lower()}://, as in {EXAMPLES}"
    if not url_scheme(url):
        return f"must begin with a service and ://, as in {EXAMPLES}"
    return None if url.isprintable() else "must not contain line breaks or control characters"


def _check_urls(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for number, value in enumerate(values, 1):
        url = value.get_secret_value()
        fault = check_form(url)
        if fault:
            raise ValueError(f"number {number} {f'({url_scheme(url)}) ' if url_scheme(url) else ''}{fault}")
        if value in values[: number - 1]:
            raise ValueError(f"number {number} ({url_scheme(url)}) is a duplicate; remove it")
    return values


def _check_kind(name: str) -> str:
    if name not in list(AlertKind):
        raise ValueError(f"{name[:60]!r} is not an accepted value")
    return name


_KINDS = ", ".join(f'"{kind}"' for kind in AlertKind)


class NotifySection(Section):
    urls: Annotated[SecretList, AfterValidator(_check_urls)] = Field(
        default=(), description=f"a list of URLs, such as {EXAMPLES}"
    )
    causes: Annotated[tuple[Annotated[str, AfterValidator(_check_kind)], ...], BeforeValidator(read_list)] = Field(
        default=tuple(kind.value for kind in AlertKind), description=f"a list of some of {_KINDS}"
    )


FOLDER_PLACEHOLDER = "{backup}"
"""The folder of the backup, in the command that runs after a backup."""


def _check_folder(value: str) -> str:
    if not value or "\0" in value or value.startswith("~"):
        raise ValueError("must be a path without ~")
    return value


def _check_command(value: tuple[str, ...]) -> tuple[str, ...]:
    if value and not value[0].strip():
        raise ValueError("must begin with a program")
    if any("\0" in part for part in value):
        raise ValueError("must not contain a NUL character")
    return value


class BackupSection(Section):
    folder: Annotated[Trimmed, AfterValidator(_check_folder)] = Field(
        default="backups", description="an absolute folder, or a folder relative to data_dir"
    )
    every: IntervalOrOff = Field(default=None, description=f'"{OFF}" or a duration of at least an hour, such as "24h"')
    keep: int = Field(default=14, ge=1, le=3660, description="a whole number from 1 to 3660")
    after: Annotated[tuple[str, ...], BeforeValidator(read_list), AfterValidator(_check_command)] = Field(
        default=(), description='a program and its arguments as a list, such as ["restic", "backup", "{backup}"]'
    )


class ProvidersSection(Section):
    x: XSection = Field(default_factory=empty)
    tiktok: TikTokSection = Field(default_factory=empty)
    pinterest: PinterestSection = Field(default_factory=empty)
    bluesky: BlueskySection = Field(default_factory=empty)


class PublishingSection(Section):
    max_lateness: Duration = Field(default=timedelta(hours=24), description=A_DURATION)
    give_up_after: Duration = Field(default=timedelta(hours=48), description=A_DURATION)
    resend_after: DurationOrNever = Field(
        default=timedelta(minutes=10), description=f'"{NEVER}" or a duration of at least a minute, such as "10m"'
    )
    min_gap: Gap = Field(default=NONE, description='a duration such as "0s", "90s" or "15m"')


class UploadsSection(Section):
    """The defaults are the limits that the API documents. Keys can only lower them."""

    max_image_bytes: ByteSize = Field(
        default=ByteSize(units.MAX_IMAGE_BYTES),
        ge=1,
        le=units.MAX_IMAGE_BYTES,
        description='bytes or a size such as "16MiB", at most "32MiB"',
    )
    max_image_pixels: int = Field(
        default=units.MAX_IMAGE_PIXELS,
        ge=1,
        le=units.MAX_IMAGE_PIXELS,
        description=f"pixels of one frame, a whole number from 1 to {units.MAX_IMAGE_PIXELS}; all frames together may "
        "have five times as many",
    )
    max_video_bytes: ByteSize = Field(
        default=ByteSize(units.MAX_VIDEO_BYTES),
        ge=1,
        le=units.MAX_VIDEO_BYTES,
        description=f'bytes or a size such as "100MB", at most {units.MAX_VIDEO_BYTES}',
    )


class MediaSection(Section):
    keep_after_settled: DurationOrForever = Field(default=None, description=f'"{FOREVER}" or a duration such as "90d"')
    import_from: PrivateHosts = Field(default=(), description=PRIVATE_HOSTS)


class StorageSection(Section):
    quota: SizeOrUnlimited = Field(default=None, description=f'"{UNLIMITED}", bytes or a size such as "50GB"')


class RetentionSection(Section):
    posts: Kept = Field(
        default=None, description=f'"{FOREVER}" or a duration of at least a week, such as "90d" or "400d"'
    )


class RateLimitSection(Section):
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")
    failed_keys_per_minute: int = Field(default=30, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")


class MetricsSection(Section):
    token: Secret = Field(
        default=SecretStr(""), description="the Bearer token for /metrics; empty if callers do not need a token"
    )


class DashboardSection(Section):
    enabled: bool = Field(default=True, description="true or false")
    session_lifetime: Duration = Field(default=timedelta(days=30), description=A_DURATION)


class McpSection(Section):
    enabled: bool = Field(default=True, description="true or false")


class HealthSection(Section):
    disk_floor_bytes: ByteSize = Field(default=ByteSize(500_000_000), description='bytes or a size such as "500MB"')


class LoggingSection(Section):
    format: Literal["human", "json"] = Field(default="human", description='"human" or "json"')
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description='"debug", "info", "warning" or "error"'
    )
