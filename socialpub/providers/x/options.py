"""What an owner may say about a post on X: contract section 6, in X's own values."""

from collections.abc import Mapping
from typing import Any

from socialpub.providers import options
from socialpub.providers.options import Option, OptionType

EVERYONE = "everyone"
"""Ours: X has no such value, it wants the field left out."""

ID_DIGITS = 19


QUOTING = "X has taken quoting away from self-serve apps (April 2026)"
COMMUNITIES = "X has closed Communities (May 2026)"

FROM_THE_ADDRESS = "It is the number at the end of the post's address."
FROM_ITS_ADDRESS = "It is the number at the end of the community's address."

TABLE: options.Table = (
    Option(
        "replySettings",
        OptionType.CHOICE,
        f"Who may reply: `{EVERYONE}`, `following` those whom the author follows, `mentionedUsers` those whom the post "
        "mentions, `subscribers` those who pay the author, `verified` accounts that X has verified.",
        default=EVERYONE,
        values=(EVERYONE, "following", "mentionedUsers", "subscribers", "verified"),
    ),
    Option("madeWithAi", OptionType.BOOLEAN, "Labels the media as made with AI.", default=False),
    Option("paidPartnership", OptionType.BOOLEAN, "Labels the post as a paid partnership.", default=False),
    Option(
        "inReplyToPostId",
        OptionType.DIGITS,
        f"The post that this one answers. {FROM_THE_ADDRESS}",
        maximum=ID_DIGITS,
        aliases=("in_reply_to_tweet_id",),
        hint=FROM_THE_ADDRESS,
        of_one_post=True,
    ),
    Option(
        "quotePostId",
        OptionType.DIGITS,
        f"The post that this one quotes; not together with media. {FROM_THE_ADDRESS} {QUOTING}.",
        maximum=ID_DIGITS,
        aliases=("quote_tweet_id",),
        hint=FROM_THE_ADDRESS,
        of_one_post=True,
        closed=QUOTING,
    ),
    Option(
        "communityId",
        OptionType.DIGITS,
        f"The community that the post goes to. {FROM_ITS_ADDRESS} {COMMUNITIES}.",
        maximum=ID_DIGITS,
        hint=FROM_ITS_ADDRESS,
        closed=COMMUNITIES,
    ),
    Option(
        "shareWithFollowers",
        OptionType.BOOLEAN,
        f"A post to a community is shown to the author's followers as well. {COMMUNITIES}.",
        default=False,
        closed=COMMUNITIES,
    ),
)


def body_fields(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The options as fields of `POST /2/tweets`: what is false or the default is left out (X forbids some of them)."""
    fields: dict[str, Any] = {}
    if chosen.get("replySettings", EVERYONE) != EVERYONE:
        fields["reply_settings"] = chosen["replySettings"]
    for key, name in (
        ("madeWithAi", "made_with_ai"),
        ("paidPartnership", "paid_partnership"),
        ("shareWithFollowers", "share_with_followers"),
    ):
        if chosen.get(key):
            fields[name] = True
    for key, name in (("quotePostId", "quote_tweet_id"), ("communityId", "community_id")):
        if chosen.get(key):
            fields[name] = chosen[key]
    if chosen.get("inReplyToPostId"):
        fields["reply"] = {"in_reply_to_tweet_id": chosen["inReplyToPostId"]}
    return fields
