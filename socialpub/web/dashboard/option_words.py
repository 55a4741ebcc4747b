"""What the options of the networks and their values are called in forms. The API's own words are in the tables."""

from typing import Any

from socialpub.providers.options import Option

LABELS = {
    "replySettings": "Who may reply",
    "madeWithAi": "Made with AI",
    "paidPartnership": "Paid partnership",
    "inReplyToPostId": "In reply to (post id)",
    "quotePostId": "Quote (post id)",
    "communityId": "Community (id)",
    "shareWithFollowers": "Share with followers",
    "mode": "How to post",
    "privacyLevel": "Who can see it",
    "title": "Title",
    "disableComment": "Comments",
    "disableDuet": "Duets",
    "disableStitch": "Stitches",
    "videoCoverTimestampMs": "Cover frame (milliseconds)",
    "photoCoverIndex": "Cover photo (first is 0)",
    "autoAddMusic": "Add music",
    "brandContentToggle": "Paid partnership (branded content)",
    "brandOrganicToggle": "Promotes your own brand",
    "isAigc": "Made by AI",
    "boardId": "Board",
    "boardSectionId": "Section",
    "link": "Link",
    "dominantColor": "Dominant colour",
    "coverImageKeyFrameTime": "Cover frame (seconds)",
    "coverArtifactId": "Cover picture",
    "aiDisclosures": "What AI made",
}

VALUES = {
    "everyone": "Everyone",
    "following": "People the author follows",
    "mentionedUsers": "People it mentions",
    "subscribers": "Subscribers",
    "verified": "Verified accounts",
    "direct": "Publish it",
    "draft": "Send to the TikTok app",
    "PUBLIC_TO_EVERYONE": "Everyone",
    "MUTUAL_FOLLOW_FRIENDS": "Friends (you follow each other)",
    "FOLLOWER_OF_CREATOR": "Followers",
    "SELF_ONLY": "Only me",
    "AI_MODIFIED": "The media was made or changed by AI",
    "SYNTHETIC_PERFORMER": "A person in it does not exist",
}

UNAUDITED = {"mode": "Send to the TikTok app in Compose, publish it over the API"}
"""The default of an option while TikTok has not audited the app, where it is another one."""

ALLOWED, NOT_ALLOWED = "allowed", "not allowed"
DENIALS = frozenset({"disableComment", "disableDuet", "disableStitch"})
"""Options whose `true` forbids something. Pages say what is allowed: nothing is negated twice."""

HINTS = {
    "boardId": "The board's id, a number. Load this page again to choose the board from a list.",
    "replySettings": "",
    "mode": "A post that is sent to the TikTok app waits in its inbox as a draft, and you finish it there.",
    "privacyLevel": "Without a choice here, every post needs its own.",
    "disableComment": "",
    "disableDuet": "",
    "disableStitch": "",
    "brandContentToggle": "Not possible where only you can see the post.",
    "photoCoverIndex": "",
    "coverImageKeyFrameTime": "Which frame of a video becomes its cover. Not together with a cover picture.",
    "coverArtifactId": "Shown for a video instead of one of its frames.",
    "aiDisclosures": "",
}
"""Where a form says less, or something else, than the table does."""

LISTED = {"boardId": "", "boardSectionId": "Sections are listed of the board that is chosen when the page is loaded."}
"""Of options that are chosen from a list of the network's."""

NEEDED = {"boardId": "choose a board, here or in the profile's default options"}
"""What the form says of a missing value."""


def complaint(key: str, message: str) -> str:
    """What the API says is wrong with an option, with the name that the form has for it."""
    return LABELS.get(key, key) + message.removeprefix(key) if message.startswith(f"{key} ") else message


def value(text: str) -> str:
    """The value in words; the text itself for one that has none."""
    return VALUES.get(text, text)


def shown(key: str, given: Any) -> str:
    """A value of any kind of this option in words."""
    match given:
        case bool() if key in DENIALS:
            return NOT_ALLOWED if given else ALLOWED
        case bool():
            return "yes" if given else "no"
        case str():
            return value(given)
        case list():
            return ", ".join(shown(key, one) for one in given)
        case _:
            return str(given)


def hint(option: Option, *, listed: bool = False) -> str:
    """What stands below the field."""
    if listed and option.name in LISTED:
        return LISTED[option.name]
    return HINTS.get(option.name, option.meaning).replace("`", "")
