"""The options of a post on TikTok, in TikTok's own values (contract section 6), and the steps of the post.

The privacy level never has a default: the owner decides who sees a post.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from socialpub.core.errors import FieldError
from socialpub.providers import options
from socialpub.providers.base import Content, Kind, Step
from socialpub.providers.options import Option, OptionType
from socialpub.providers.tiktok import limits

DIRECT, DRAFT = "direct", "draft"
PRIVATE = "SELF_ONLY"
PRIVACY_LEVELS = ("PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "FOLLOWER_OF_CREATOR", PRIVATE)

FIRST_PHOTO = 0
OFF_BY_DEFAULT = True
INTERACTIONS = {"comment": "disableComment", "duet": "disableDuet", "stitch": "disableStitch"}
"""What others may do with a post, and the option that switches it off.

TikTok's guidelines require the default "off". Photos have only comments.
"""
INTERACTIONS_PLURAL = {"comment": "comments", "duet": "duets", "stitch": "stitches"}


def join_words(words: Iterable[str], last: str) -> str:
    """Return the words as a list in a sentence, with `last` before the last word."""
    *others, end = words or [""]
    return f"{', '.join(others)} {last} {end}" if others else end


TABLE: options.Table = (
    Option(
        "mode",
        OptionType.CHOICE,
        f"`{DIRECT}` publishes the post. `{DRAFT}` sends the post to the inbox of TikTok's app, where you finish it.",
        default=DIRECT,
        values=(DIRECT, DRAFT),
    ),
    Option(
        "privacyLevel",
        OptionType.CHOICE,
        "Who sees the post. `PUBLIC_TO_EVERYONE`: everyone. `MUTUAL_FOLLOW_FRIENDS`: followers whom the account "
        f"follows back. `FOLLOWER_OF_CREATOR`: followers. `{PRIVATE}`: only the account itself. Required with mode "
        f"`{DIRECT}`, without a default. TikTok offers each account some of these levels.",
        values=PRIVACY_LEVELS,
        required=lambda chosen: not is_draft(chosen),
    ),
    Option(
        "title",
        OptionType.TEXT,
        "The title of a photo post. The post's body is the description.",
        maximum=limits.PHOTO_TITLE_UNITS,
        of_one_post=True,
    ),
    Option(
        "disableComment",
        OptionType.BOOLEAN,
        "Turns off comments. Set `false` to allow comments.",
        default=OFF_BY_DEFAULT,
    ),
    Option(
        "disableDuet",
        OptionType.BOOLEAN,
        "Turns off duets for a video. Set `false` to allow duets. Not available for photos.",
        default=OFF_BY_DEFAULT,
    ),
    Option(
        "disableStitch",
        OptionType.BOOLEAN,
        "Turns off stitches for a video. Set `false` to allow stitches. Not available for photos.",
        default=OFF_BY_DEFAULT,
    ),
    Option(
        "videoCoverTimestampMs",
        OptionType.INTEGER,
        "The video frame for the cover, in milliseconds from the start. Without this option, TikTok uses the first "
        "frame.",
        maximum=2**31 - 1,
        hint="Give the time in milliseconds.",
        of_one_post=True,
    ),
    Option(
        "photoCoverIndex",
        OptionType.INTEGER,
        "The index of the cover photo. The first photo has index 0.",
        default=FIRST_PHOTO,
        maximum=limits.PHOTOS - 1,
        hint="The first photo has index 0.",
        of_one_post=True,
    ),
    Option("autoAddMusic", OptionType.BOOLEAN, "Lets TikTok add music to a photo post.", default=False),
    Option(
        "brandContentToggle",
        OptionType.BOOLEAN,
        f"Marks the post as a paid partnership. TikTok does not allow this with `{PRIVATE}`.",
        default=False,
    ),
    Option(
        "brandOrganicToggle", OptionType.BOOLEAN, "Marks the post as promoting its owner's own business.", default=False
    ),
    Option("isAigc", OptionType.BOOLEAN, "Labels a video as made with AI.", default=False),
)


def is_draft(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen.get("mode", DIRECT) == DRAFT)


def loses_caption(chosen: Mapping[str, Any], *, has_video: bool) -> bool:
    return has_video and is_draft(chosen)


def contradictions(chosen: Mapping[str, Any]) -> list[FieldError]:
    if is_draft(chosen):
        return []
    level = chosen.get("privacyLevel")
    if level is None:
        message = (
            f"A direct post needs privacyLevel: one of {', '.join(PRIVACY_LEVELS)}. "
            'With mode "draft", TikTok asks for the level in its app instead.'
        )
        return [FieldError(("providerOptions", "tiktok", "privacyLevel"), message)]
    if level == PRIVATE and chosen.get("brandContentToggle"):
        message = (
            f"brandContentToggle marks a paid partnership, which TikTok does not allow with {PRIVATE}. Choose another "
            "privacyLevel, or remove brandContentToggle."
        )
        return [FieldError(("providerOptions", "tiktok", "brandContentToggle"), message)]
    return []


# --- the steps of a post ----------------------------------------------------------------------------------------------

CREATOR = "creator_info"
INIT_VIDEO = "init_video"
INIT_DRAFT = "init_draft"
SEND_CHUNKS = "send_chunks"
SEND_LAST = "send_last"
FIT_PHOTOS = "fit_photos"
INIT_PHOTOS = "init_photos"
INIT_PHOTO_DRAFT = "init_photo_draft"
AWAIT = "await_outcome"
SETTLE_DRAFT = "settle_draft"


def plan_steps(content: Content, chosen: Mapping[str, Any]) -> list[Step]:
    draft = is_draft(chosen)
    # TikTok requires this query before every direct post. A token for drafts may not send it.
    steps = [] if draft else [Step(CREATOR, Kind.PREPARE)]
    if content.has_video:
        steps.append(Step(INIT_DRAFT if draft else INIT_VIDEO, Kind.PREPARE))
        if content.media[0].size_bytes > limits.ONE_CHUNK_BYTES:
            steps.append(Step(SEND_CHUNKS, Kind.PREPARE))
        steps.append(Step(SEND_LAST, Kind.COMMIT))
    else:
        steps.append(Step(FIT_PHOTOS, Kind.PREPARE))
        steps.append(Step(INIT_PHOTO_DRAFT if draft else INIT_PHOTOS, Kind.COMMIT))
    steps.append(Step(AWAIT, Kind.POLL))
    if draft:
        steps.append(Step(SETTLE_DRAFT, Kind.POLL))
    return steps
