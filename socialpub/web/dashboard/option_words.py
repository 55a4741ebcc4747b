"""What the options of the networks and their values are called in forms. The API's own words are in the tables."""

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
    "disableComment": "Comments off",
    "disableDuet": "Duets off",
    "disableStitch": "Stitches off",
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
    "coverArtifactId": "Cover picture (artifact id)",
    "aiDisclosures": "What AI made",
}

VALUES = {
    "everyone": "Everyone",
    "following": "People the author follows",
    "mentionedUsers": "People it mentions",
    "subscribers": "Subscribers",
    "verified": "Verified accounts",
    "direct": "Publish it",
    "draft": "Draft in the app's inbox",
    "PUBLIC_TO_EVERYONE": "Everyone",
    "MUTUAL_FOLLOW_FRIENDS": "Friends (you follow each other)",
    "FOLLOWER_OF_CREATOR": "Followers",
    "SELF_ONLY": "Only me",
    "AI_MODIFIED": "The media was made or changed by AI",
    "SYNTHETIC_PERFORMER": "A person in it does not exist",
}

HINTS = {
    "boardId": "The id, a number: the address of the board does not show it, `socialpub admin list-boards` does.",
    "replySettings": "",
    "mode": "A draft waits in the inbox of TikTok's app, to be finished there.",
    "privacyLevel": "Nobody but you chooses it: without a choice here every post needs one of its own.",
    "disableComment": "",
    "disableDuet": "",
    "disableStitch": "",
    "brandContentToggle": "Not possible where only you can see the post.",
    "photoCoverIndex": "",
    "coverImageKeyFrameTime": "Which frame of a video becomes its cover. Not together with a cover picture.",
    "coverArtifactId": "Shown for a video instead of one of its frames: the id of an uploaded picture.",
    "aiDisclosures": "",
}
"""Where a form says less, or something else, than the table does."""

LISTED = {"boardId": "", "boardSectionId": "Sections are listed of the board that is chosen when the page is loaded."}
"""Of options that are chosen from a list of the network's."""

_NEEDED = {"boardId": "choose a board, here or in the profile's default options"}
"""Where the API explains how to find a value that the form lists."""


def complaint(key: str, message: str) -> str:
    """What the API says is wrong with an option, with the name that the form has for it."""
    if key in _NEEDED and message.startswith(f"{key} is needed"):
        return _NEEDED[key]
    return LABELS.get(key, key) + message.removeprefix(key) if message.startswith(f"{key} ") else message


def value(text: str) -> str:
    """The value in words; the text itself for one that has none."""
    return VALUES.get(text, text)


def hint(option: Option, *, listed: bool = False) -> str:
    """What stands below the field."""
    if listed and option.name in LISTED:
        return LISTED[option.name]
    return HINTS.get(option.name, option.meaning).replace("`", "")
