"""The options of a pin, in Pinterest's own values (contract section 6).

A post always contains the id of its board. A board's name instead of its id is the most frequent mistake.
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


CHOICES_PATH = "GET /api/v1/profiles/{id}/choices"


def how_to_list_boards() -> str:
    with commands.in_public():
        how = commands.or_run("admin", "list-boards", "PROFILE")
    # In the dashboard, `how` is empty, and its owner needs no path of the API.
    return f"open the profile's page in the dashboard{how and f'{how}. Programs read {CHOICES_PATH}'}"


def not_a_name() -> str:
    return f"A board's name is not its id. To see the ids, {how_to_list_boards()}."


TABLE: options.Table = (
    Option(
        "boardId",
        OptionType.DIGITS,
        f"The id of the board for the pin. Required. `socialpub admin list-boards` and `{CHOICES_PATH}` list the ids.",
        hint=not_a_name,
        required=lambda _: True,
    ),
    Option(
        "boardSectionId",
        OptionType.DIGITS,
        "The id of a section of that board. Without this option, the pin is in no section. "
        f"`{CHOICES_PATH}?boardId=…` lists the ids.",
        hint="A section's name is not its id.",
    ),
    Option("title", OptionType.TEXT, "The pin's title.", maximum=limits.TITLE_UNITS, of_one_post=True),
    Option("link", OptionType.LINK, "The page that a click on the pin opens.", maximum=limits.LINK_CHARACTERS),
    Option(
        "dominantColor",
        OptionType.COLOR,
        "The color that Pinterest shows until the image has loaded, such as `#6E7874`.",
        of_one_post=True,
    ),
    Option(
        "coverImageKeyFrameTime",
        OptionType.INTEGER,
        f"The video frame for the cover, in whole seconds from the start. Do not combine this option with `{COVER}`.",
        default=FIRST_FRAME,
        hint="Give whole seconds, not milliseconds.",
        of_one_post=True,
    ),
    Option(
        COVER,
        OptionType.ARTIFACT,
        "An image for the cover of a video: the `artifactId` of a verified upload. Do not combine this option with "
        "`coverImageKeyFrameTime`.",
        of_one_post=True,
    ),
    Option(
        "aiDisclosures",
        OptionType.CHOICES,
        "Discloses the use of AI. `AI_MODIFIED`: AI made or changed the media. `SYNTHETIC_PERFORMER`: a person in the "
        "media does not exist.",
        values=("AI_MODIFIED", "SYNTHETIC_PERFORMER"),
    ),
)


def missing(chosen: Mapping[str, Any]) -> list[FieldError]:
    if "boardId" in chosen:
        return []
    message = (
        "A pin needs a board. Choose a board in the options of the post or of the profile (boardId). The profile's "
        f"page in the dashboard and `{CHOICES_PATH}` list the boards and their ids."
    )
    return [FieldError(("providerOptions", "pinterest", "boardId"), message, FieldCode.OPTION_MISSING)]
