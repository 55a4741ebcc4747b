"""What an owner may say about a pin: contract section 6, in Pinterest's own values.

The board is always named by its id. Passing a board's name is the most frequent mistake and has its own sentence.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.providers import options
from socialpub.providers.content import Options, Problem
from socialpub.providers.options import Option, OptionType
from socialpub.providers.pinterest import limits

COVER = "coverArtifactId"
FIRST_FRAME = 0
NOT_A_NAME = "A board's name is not its id: `socialpub admin list-boards` shows the ids."


TABLE: options.Table = (
    Option(
        "boardId",
        OptionType.DIGITS,
        "The board that the pin goes to, always needed. `socialpub admin list-boards` shows the ids.",
        hint=NOT_A_NAME,
    ),
    Option(
        "boardSectionId",
        OptionType.DIGITS,
        "A section of that board. Not given, the pin lies in none.",
        hint="A section's name is not its id.",
    ),
    Option("title", OptionType.TEXT, "The pin's title.", maximum=limits.TITLE_UNITS),
    Option("link", OptionType.LINK, "The page that a click on the pin opens.", maximum=limits.LINK_CHARACTERS),
    Option(
        "dominantColor", OptionType.COLOUR, "The colour that is shown until the picture has loaded, such as `#6E7874`."
    ),
    Option(
        "coverImageKeyFrameTime",
        OptionType.INTEGER,
        f"Which frame of a video becomes its cover, in whole seconds from its beginning. Not together with `{COVER}`.",
        default=FIRST_FRAME,
        hint="It is counted in whole seconds, not milliseconds.",
    ),
    Option(
        COVER,
        OptionType.ARTIFACT,
        "A picture as the cover of a video: the `artifactId` of a verified upload. Not together with "
        "`coverImageKeyFrameTime`.",
    ),
    Option(
        "aiDisclosures",
        OptionType.CHOICES,
        "What was made by AI: `AI_MODIFIED` says that the media was made or changed by it, `SYNTHETIC_PERFORMER` that "
        "a person in it does not exist.",
        values=("AI_MODIFIED", "SYNTHETIC_PERFORMER"),
    ),
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
