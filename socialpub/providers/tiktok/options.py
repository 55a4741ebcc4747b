"""What an owner may say about a post on TikTok, in TikTok's own values (contract section 6), and the steps of the post.

The privacy level never has a default: the owner decides who sees a post.
"""

from collections.abc import Mapping
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
OFF_AT_FIRST = True
INTERACTIONS = {"comment": "disableComment", "duet": "disableDuet", "stitch": "disableStitch"}
"""What others may do with a post, and the option that switches it off. Off unless the post or its profile says `false`:
TikTok's guidelines want them off at first. Photos know comments only."""
INTERACTIONS_PLURAL = {"comment": "comments", "duet": "duets", "stitch": "stitches"}

TABLE: options.Table = (
    Option(
        "mode",
        OptionType.CHOICE,
        f"`{DIRECT}` publishes the post; `{DRAFT}` puts it into the inbox of TikTok's app, to be finished there.",
        default=DIRECT,
        values=(DIRECT, DRAFT),
    ),
    Option(
        "privacyLevel",
        OptionType.CHOICE,
        f"Who sees the post: `PUBLIC_TO_EVERYONE` everybody, `MUTUAL_FOLLOW_FRIENDS` those who follow each other, "
        f"`FOLLOWER_OF_CREATOR` the followers, `{PRIVATE}` nobody else. Needed with mode `{DIRECT}`: nobody but the "
        "owner chooses it. TikTok offers each account some of them.",
        values=PRIVACY_LEVELS,
    ),
    Option(
        "title",
        OptionType.TEXT,
        "The title of a post of photos; the post's body is its description.",
        maximum=limits.PHOTO_TITLE_UNITS,
        of_one_post=True,
    ),
    Option("disableComment", OptionType.BOOLEAN, "Nobody may comment; `false` allows it.", default=OFF_AT_FIRST),
    Option(
        "disableDuet",
        OptionType.BOOLEAN,
        "Nobody may make a duet with the video; `false` allows it. Photos know none.",
        default=OFF_AT_FIRST,
    ),
    Option(
        "disableStitch",
        OptionType.BOOLEAN,
        "Nobody may stitch the video; `false` allows it. Photos know no stitching.",
        default=OFF_AT_FIRST,
    ),
    Option(
        "videoCoverTimestampMs",
        OptionType.INTEGER,
        "Which frame of a video becomes its cover, in milliseconds from its beginning. Not given, TikTok takes the "
        "first.",
        maximum=2**31 - 1,
        hint="It is counted in milliseconds.",
        of_one_post=True,
    ),
    Option(
        "photoCoverIndex",
        OptionType.INTEGER,
        "Which of the photos is the cover; the first is 0.",
        default=FIRST_PHOTO,
        maximum=limits.PHOTOS - 1,
        hint="The first photo is 0.",
        of_one_post=True,
    ),
    Option("autoAddMusic", OptionType.BOOLEAN, "TikTok adds music to a post of photos.", default=False),
    Option(
        "brandContentToggle",
        OptionType.BOOLEAN,
        f"Marks the post as a paid partnership. TikTok does not allow it with `{PRIVATE}`.",
        default=False,
    ),
    Option(
        "brandOrganicToggle", OptionType.BOOLEAN, "Marks the post as promoting its owner's own business.", default=False
    ),
    Option("isAigc", OptionType.BOOLEAN, "Labels a video as made by AI.", default=False),
)


def is_draft(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen.get("mode", DIRECT) == DRAFT)


def loses_caption(chosen: Mapping[str, Any], *, has_video: bool) -> bool:
    """Return whether TikTok takes no text with such a post: the owner pastes it in the app."""
    return has_video and is_draft(chosen)


def contradictions(chosen: Mapping[str, Any]) -> list[FieldError]:
    """Return the options that are missing or exclude each other."""
    if is_draft(chosen):
        return []
    level = chosen.get("privacyLevel")
    if level is None:
        message = (
            f"privacyLevel is needed for a direct post: one of {', '.join(PRIVACY_LEVELS)}. "
            'With mode "draft" TikTok asks for it in the app instead.'
        )
        return [FieldError(("providerOptions", "tiktok", "privacyLevel"), message)]
    if level == PRIVATE and chosen.get("brandContentToggle"):
        message = f"brandContentToggle marks a paid partnership, which TikTok does not allow with {PRIVATE}."
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
    # TikTok wants to be asked about the creator before every direct post; a token for drafts may not ask.
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
