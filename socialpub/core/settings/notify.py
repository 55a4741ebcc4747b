"""`[notify]`: where the owner is told what needs them, and what they want to be told.

The addresses hold passwords. Whatever is said of one names it by its place in the list and by its service alone.
"""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from socialpub.core.cause_kinds import CauseKind
from socialpub.core.settings.values import SecretList, Section, Trimmed, read_list

EXAMPLES = "mailto://…, ntfy://…, gotify://… or tgram://…"


def service_of(url: str) -> str:
    """What an address begins with, in front of ://; empty when it does not begin as one."""
    service, mark, rest = url.partition("://")
    return service.lower() if mark and rest.strip() and service.isascii() and service.isalnum() else ""


def _check_urls(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for number, value in enumerate(values, 1):
        url = value.get_secret_value()
        if not service_of(url):
            raise ValueError(f"number {number} must begin with a service and ://, and go on, as {EXAMPLES}")
        if not url.isprintable():
            raise ValueError(f"number {number} ({service_of(url)}) must not hold line breaks or control characters")
        if value in values[: number - 1]:
            raise ValueError(f"number {number} ({service_of(url)}) is there twice: keep one of them")
    return values


def _check_kind(name: str) -> str:
    if name not in list(CauseKind):
        raise ValueError(f"{name[:60]!r} is none of them")
    return name


_KINDS = ", ".join(f'"{kind}"' for kind in CauseKind)


class NotifySection(Section):
    urls: Annotated[SecretList, AfterValidator(_check_urls)] = Field(
        default=(), description=f"a list of addresses, such as {EXAMPLES}"
    )
    urls_file: Trimmed = Field(
        default="",
        description="the name of a readable file with one address a line, looked for in $CREDENTIALS_DIRECTORY, then "
        "beside the configuration; empty when urls itself is given",
    )
    causes: Annotated[tuple[Annotated[str, AfterValidator(_check_kind)], ...], BeforeValidator(read_list)] = Field(
        default=tuple(kind.value for kind in CauseKind), description=f"a list of some of {_KINDS}"
    )
    daily_limit: int = Field(default=20, ge=1, le=1000, description="a whole number from 1 to 1000")
