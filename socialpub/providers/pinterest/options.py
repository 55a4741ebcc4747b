"""What an owner may say about a pin: contract section 6, in Pinterest's own values.

The board is always named by its id. Passing a board's name is the most frequent mistake and has its own sentence.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.core import commands
from socialpub.core.errors import FieldCode, FieldError
from socialpub.providers import options
from socialpub.providers.options import Option, OptionType
from socialpub.providers.pinterest import limits

COVER = "coverArtifactId"
FIRST_FRAME = 0


def not_a_name() -> str:
    with commands.in_public():
        how = commands.or_run("admin", "list-boards", "PROFILE")
    return f"A board's name is not its id. To see the ids, open the profile's page in the dashboard{how}."


TABLE: options.Table = (
    Option(
        "boardId",
        OptionType.DIGITS,
        "The board that the pin goes to, always needed. `socialpub admin list-boards` shows the ids.",
        hint=not_a_name,
    ),
    Option(
        "boardSectionId",
        OptionType.DIGITS,
        "A section of that board. Not given, the pin lies in none.",
        hint="A section's name is not its id.",
    ),
    Option("title", OptionType.TEXT, "The pin's title.", maximum=limits.TITLE_UNITS, of_one_post=True),
    Option("link", OptionType.LINK, "The page that a click on the pin opens.", maximum=limits.LINK_CHARACTERS),
    Option(
        "dominantColor",
        OptionType.COLOUR,
        "The colour that is shown until the picture has loaded, such as `#6E7874`.",
        of_one_post=True,
    ),
    Option(
        "coverImageKeyFrameTime",
        OptionType.INTEGER,
        f"Which frame of a video becomes its cover, in whole seconds from its beginning. Not together with `{COVER}`.",
        default=FIRST_FRAME,
        hint="It is counted in whole seconds, not milliseconds.",
        of_one_post=True,
    ),
    Option(
        COVER,
        OptionType.ARTIFACT,
        "A picture as the cover of a video: the `artifactId` of a verified upload. Not together with "
        "`coverImageKeyFrameTime`.",
        of_one_post=True,
    ),
    Option(
        "aiDisclosures",
        OptionType.CHOICES,
        "What was made by AI: `AI_MODIFIED` says that the media was made or changed by it, `SYNTHETIC_PERFORMER` that "
        "a person in it does not exist.",
        values=("AI_MODIFIED", "SYNTHETIC_PERFORMER"),
    ),
)


def missing(chosen: Mapping[str, Any]) -> list[FieldError]:
    if "boardId" in chosen:
        return []
    message = (
        "A pin needs a board. Choose one in the options of the post or of the profile (boardId). The profile's page in "
        "the dashboard lists the boards with their ids."
    )
    return [FieldError(("providerOptions", "pinterest", "boardId"), message, FieldCode.OPTION_MISSING)]
