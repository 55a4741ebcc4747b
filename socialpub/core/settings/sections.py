"""The sections of the configuration, and what each value may be.

Every key has a default and a `description`, the sentence that a wrong value is answered with. Values are frozen; a key
that depends on another one is compared with it here.
"""

from datetime import timedelta
from typing import Literal

from pydantic import ByteSize, Field, SecretStr, ValidationInfo, field_validator

from socialpub.core import durations, upload_limits
from socialpub.core.settings.networks import PinterestSection, TikTokSection, XSection
from socialpub.core.settings.values import (
    A_DURATION,
    FILE_INSTEAD,
    FOREVER,
    NEVER,
    NONE,
    UNLIMITED,
    Duration,
    DurationOrForever,
    DurationOrNever,
    Gap,
    Kept,
    Secret,
    Section,
    SizeOrUnlimited,
    Trimmed,
)


class ProvidersSection(Section):
    x: XSection = XSection()
    tiktok: TikTokSection = TikTokSection()
    pinterest: PinterestSection = PinterestSection()


class PublishingSection(Section):
    max_lateness: Duration = Field(default=timedelta(hours=24), description=A_DURATION)
    give_up_after: Duration = Field(default=timedelta(hours=48), description=A_DURATION)
    resend_after: DurationOrNever = Field(
        default=timedelta(minutes=10), description=f'"{NEVER}" or a duration of at least a minute, such as "10m"'
    )
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
        default=ByteSize(upload_limits.MAX_IMAGE_BYTES),
        ge=1,
        le=upload_limits.MAX_IMAGE_BYTES,
        description='bytes or a size such as "16MiB", at most "32MiB"',
    )
    max_image_pixels: int = Field(
        default=upload_limits.MAX_IMAGE_PIXELS,
        ge=1,
        le=upload_limits.MAX_IMAGE_PIXELS,
        description=f"pixels of one frame, a whole number from 1 to {upload_limits.MAX_IMAGE_PIXELS}",
    )
    max_image_total_pixels: int = Field(
        default=upload_limits.MAX_IMAGE_TOTAL_PIXELS,
        ge=1,
        le=upload_limits.MAX_IMAGE_TOTAL_PIXELS,
        description="pixels of all frames, a whole number from uploads.max_image_pixels to "
        f"{upload_limits.MAX_IMAGE_TOTAL_PIXELS}",
    )
    max_video_bytes: ByteSize = Field(
        default=ByteSize(upload_limits.MAX_VIDEO_BYTES),
        ge=1,
        le=upload_limits.MAX_VIDEO_BYTES,
        description=f'bytes or a size such as "100MB", at most {upload_limits.MAX_VIDEO_BYTES}',
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
    keep_after_settled: DurationOrForever = Field(default=None, description=f'"{FOREVER}" or a duration such as "90d"')


class StorageSection(Section):
    quota: SizeOrUnlimited = Field(default=None, description=f'"{UNLIMITED}", bytes or a size such as "50GB"')


KEPT_FOR = f'"{FOREVER}" or a duration of at least a week, such as "90d" or "400d"'


class RetentionSection(Section):
    posts: Kept = Field(default=None, description=KEPT_FOR)
    log: Kept = Field(default=None, description=KEPT_FOR)
    attempts: Kept = Field(default=None, description=KEPT_FOR)
    trail: Kept = Field(default=None, description=KEPT_FOR)
    usage: Kept = Field(default=timedelta(days=400), description=KEPT_FOR)


class RateLimitSection(Section):
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")
    failed_keys_per_minute: int = Field(default=30, ge=1, le=1_000_000, description="a whole number from 1 to 1000000")


class MetricsSection(Section):
    token: Secret = Field(default=SecretStr(""), description="the Bearer token that /metrics asks for; empty: open")
    token_file: Trimmed = Field(default="", description=FILE_INSTEAD)


class DashboardSection(Section):
    enabled: bool = Field(default=True, description="true or false")
    session_lifetime: Duration = Field(default=timedelta(days=30), description=A_DURATION)


class HealthSection(Section):
    disk_floor_bytes: ByteSize = Field(default=ByteSize(500_000_000), description='bytes or a size such as "500MB"')


class LoggingSection(Section):
    format: Literal["human", "json"] = Field(default="human", description='"human" or "json"')
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description='"debug", "info", "warning" or "error"'
    )


LONGEST_BUSY = timedelta(seconds=30)
"""A worker that waits for longer may look as if it hung: systemd's watchdog would end it."""


class DatabaseSection(Section):
    busy_timeout: Duration = Field(
        default=timedelta(seconds=5), le=LONGEST_BUSY, description='a duration up to "30s", such as "5s"'
    )
    replicated: bool = Field(default=False, description="true or false")
