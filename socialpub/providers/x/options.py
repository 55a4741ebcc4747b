"""The options of a post on X, in X's own values (contract section 6)."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers import options
from socialpub.providers.options import Option, OptionType

EVERYONE = "everyone"
"""Ours: X does not have this value and requires that the field is absent."""

ID_DIGITS = 19

QUOTING = "Since April 2026, X does not let self-serve apps quote posts"
COMMUNITIES = "X closed Communities in May 2026"

POST_ID = "The id is the number at the end of the post's URL."
COMMUNITY_ID = "The id is the number at the end of the community's URL."

TABLE: options.Table = (
    Option(
        "replySettings",
        OptionType.CHOICE,
        f"Who may reply. `{EVERYONE}`: all accounts. `following`: accounts that the author follows. `mentionedUsers`: "
        "accounts that the post mentions. `subscribers`: accounts that pay the author. `verified`: accounts that X has "
        "verified.",
        default=EVERYONE,
        values=(EVERYONE, "following", "mentionedUsers", "subscribers", "verified"),
    ),
    Option("madeWithAi", OptionType.BOOLEAN, "Labels the media as made with AI.", default=False),
    Option("paidPartnership", OptionType.BOOLEAN, "Labels the post as a paid partnership.", default=False),
    Option(
        "inReplyToPostId",
        OptionType.DIGITS,
        f"The id of the post to reply to. {POST_ID}",
        maximum=ID_DIGITS,
        aliases=("in_reply_to_tweet_id",),
        hint=POST_ID,
        of_one_post=True,
    ),
    Option(
        "replyToPostId",
        OptionType.POST,
        "The id of one of your posts in socialpub with a delivery to the same profile. This post waits until that post "
        "is published. It is then sent as a reply to that post. Do not combine this option with `inReplyToPostId`.",
        of_one_post=True,
        sent_as="inReplyToPostId",
    ),
    Option(
        "quotePostId",
        OptionType.DIGITS,
        f"The id of the post to quote. Do not combine this option with media. {POST_ID} {QUOTING}.",
        maximum=ID_DIGITS,
        aliases=("quote_tweet_id",),
        hint=POST_ID,
        of_one_post=True,
        closed=QUOTING,
    ),
    Option(
        "communityId",
        OptionType.DIGITS,
        f"The id of the community for the post. {COMMUNITY_ID} {COMMUNITIES}.",
        maximum=ID_DIGITS,
        hint=COMMUNITY_ID,
        closed=COMMUNITIES,
    ),
    Option(
        "shareWithFollowers",
        OptionType.BOOLEAN,
        f"Also shows a community post to the author's followers. {COMMUNITIES}.",
        default=False,
        closed=COMMUNITIES,
    ),
)


ANY_POST = "any post"
"""The parent of a reply whose parent is unknown here, for a read-back."""


def reply_target(chosen: Mapping[str, Any]) -> str | None:
    """Return the id on X of the post to which a post replies, or `ANY_POST`. None: the post is not a reply."""
    return chosen.get("inReplyToPostId") or (ANY_POST if chosen.get("replyToPostId") else None)
