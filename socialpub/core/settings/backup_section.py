"""The section of the configuration about scheduled copies: where they lie, how many stay, what follows each."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from socialpub.core.settings.values import A_DURATION, OFF, Duration, IntervalOrOff, Section, Trimmed, read_list

PLACE = "{copy}"
"""In the command that follows a copy: the copy's folder."""

_MOST_KEPT = 3660


def _check_folder(value: str) -> str:
    if not value or "\0" in value or value.startswith("~"):
        raise ValueError("must be a path, written out without ~")
    return value


def _check_command(value: tuple[str, ...]) -> tuple[str, ...]:
    if value and not value[0].strip():
        raise ValueError("must begin with a program")
    if any("\0" in part for part in value):
        raise ValueError("must not hold a NUL character")
    return value


A_NUMBER = f"a whole number from 0 to {_MOST_KEPT}"


class BackupSection(Section):
    folder: Annotated[Trimmed, AfterValidator(_check_folder)] = Field(
        default="backups", description="a folder, relative to data_dir or absolute"
    )
    every: IntervalOrOff = Field(default=None, description=f'"{OFF}" or a duration of at least an hour, such as "24h"')
    keep_days: int = Field(default=7, ge=0, le=_MOST_KEPT, description=A_NUMBER)
    keep_weeks: int = Field(default=4, ge=0, le=_MOST_KEPT, description=A_NUMBER)
    keep_months: int = Field(default=6, ge=0, le=_MOST_KEPT, description=A_NUMBER)
    after: Annotated[tuple[str, ...], BeforeValidator(read_list), AfterValidator(_check_command)] = Field(
        default=(), description='a program and its arguments as a list, such as ["restic", "backup", "{copy}"]'
    )
    after_timeout: Duration = Field(default=timedelta(hours=6), description=A_DURATION)
    max_age: Duration = Field(default=timedelta(days=7), description=A_DURATION)
