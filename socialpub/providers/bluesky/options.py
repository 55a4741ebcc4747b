"""The options of a post on Bluesky (contract 11.4)."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers import options
from socialpub.providers.options import Option, OptionType

EVERYONE = "everyone"
REPLY_TO = "replyTo"
"""The AT-URI of the post to which a post replies, once that post is published."""

CONTENT_LABELS = {
    "sexual": "Suggestive",
    "nudity": "Nudity",
    "porn": "Adult content",
    "graphic-media": "Graphic media",
}
"""The names of the labels in Bluesky's app."""
_RULES = {"followers": "followerRule", "following": "followingRule", "mentioned": "mentionRule"}

TABLE: options.Table = (
    Option(
        "replyControl",
        OptionType.CHOICE,
        f"Who may reply. `{EVERYONE}`: all accounts. `followers`: accounts that follow the author. `following`: "
        "accounts that the author follows. `mentioned`: accounts that the post mentions. `nobody`: no account. A reply "
        "has no setting of its own.",
        default=EVERYONE,
        values=(EVERYONE, "followers", "following", "mentioned", "nobody"),
    ),
    Option(
        "contentLabels",
        OptionType.CHOICES,
        "Warnings that readers see before the post. `sexual`: suggestive content. `nudity`: nudity without sexual "
        "content. `porn`: adult content. `graphic-media`: violence or injuries.",
        values=tuple(CONTENT_LABELS),
    ),
    Option(
        "languages",
        OptionType.LANGUAGES,
        "The languages of the text as language tags, such as `en` or `pt-BR`. Bluesky shows readers posts in their "
        "languages.",
        maximum=3,
    ),
    Option(
        "linkCard",
        OptionType.BOOLEAN,
        "Shows the first link of a post without media as a card with the page's title, description and image.",
        default=True,
    ),
    Option(
        "replyToPostId",
        OptionType.POST,
        "The id of one of your posts in socialpub with a delivery to the same profile. This post waits until that post "
        "is published. It is then sent as a reply to that post.",
        of_one_post=True,
        sent_as=REPLY_TO,
    ),
)


def is_reply(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen.get(REPLY_TO) or chosen.get("replyToPostId"))


def reply_rules(chosen: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """Return the rules of the record that limits replies (`app.bsky.feed.threadgate`). None: everyone may reply.

    The setting belongs to the first post of a thread, so a reply has none.
    """
    control = chosen.get("replyControl", EVERYONE)
    if control == EVERYONE or is_reply(chosen):
        return None
    return [{"$type": f"app.bsky.feed.threadgate#{_RULES[control]}"}] if control in _RULES else []
