"""What an owner may say about a pin: contract section 6, in Pinterest's own values.

The board is always named by its id. Passing a board's name is the most frequent mistake and has its own sentence.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from socialpub.providers import options
from socialpub.providers.content import Options, Problem
from socialpub.providers.options import Option, OptionType
from socialpub.providers.pinterest import limits

COVER = "coverArtifactId"
NOT_A_NAME = "A board's name is not its id: `socialpub admin list-boards` shows the ids."


def _check_link(value: str) -> str | None:
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = None
    if parts is None or parts.scheme.lower() not in ("http", "https") or not parts.netloc or re.search(r"\s", value):
        return "must be a whole http or https address, such as https://example.com/page"
    return None


def _check_colour(value: str) -> str | None:
    return None if re.fullmatch(r"#[0-9A-Fa-f]{6}", value) else "must be a colour such as #6E7874"


TABLE: options.Table = (
    Option("boardId", OptionType.DIGITS, hint=NOT_A_NAME),
    Option("boardSectionId", OptionType.DIGITS, hint="A section's name is not its id."),
    Option("title", OptionType.TEXT, maximum=limits.TITLE_UNITS),
    Option("link", OptionType.TEXT, maximum=limits.LINK_CHARACTERS, check=_check_link),
    Option("dominantColor", OptionType.TEXT, check=_check_colour),
    Option("coverImageKeyFrameTime", OptionType.INTEGER, hint="It is counted in whole seconds, not milliseconds."),
    Option(COVER, OptionType.ARTIFACT),
    Option("aiDisclosures", OptionType.CHOICES, values=("AI_MODIFIED", "SYNTHETIC_PERFORMER")),
)


def read(given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
    """Canonical options and what is wrong with the given ones."""
    return options.read("pinterest", TABLE, given)


def merge(stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
    """Stored defaults under a post's own keys."""
    return options.merge(TABLE, stored, own)


def missing(chosen: Mapping[str, Any]) -> list[Problem]:
    """What a pin cannot do without."""
    if "boardId" in chosen:
        return []
    return [
        Problem(("providerOptions", "pinterest", "boardId"), f"boardId is needed: a string of digits. {NOT_A_NAME}")
    ]
