"""What `POST /2/tweets` refuses."""

from typing import Any

from socialpub.sandbox.reply import Refusal
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import XAccount, XMedia
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.schema import array_of, boolean, digits, number, object_of, one_of, text
from socialpub.sandbox.x.text import FORBIDDEN, cashtags, links, mentions, weighted_length

REPLY_SETTINGS = one_of("following", "mentionedUsers", "subscribers", "verified")
_SITE = object_of({"url": text()}, "url")
CREATE = object_of(
    {
        "text": text(),
        "card_uri": text(),
        "community_id": digits,
        "direct_message_deep_link": text(),
        "edit_options": object_of({"previous_post_id": digits}, "previous_post_id"),
        "for_super_followers_only": boolean,
        "geo": object_of({"place_id": text()}, "place_id"),
        "made_with_ai": boolean,
        "media": object_of(
            {
                "media_ids": array_of(digits, 1, 4),
                "tagged_user_ids": array_of(digits, 0, 10),
                "preview_media_id": digits,
                "title": text(),
                "embeddable": boolean,
                "call_to_actions": object_of(
                    {
                        "app_install": object_of(
                            {"app_store_id": text(), "ipad_app_store_id": text(), "play_store_id": text()}
                        ),
                        "visit_site": _SITE,
                        "watch_now": _SITE,
                    }
                ),
            },
            "media_ids",
        ),
        "nullcast": boolean,
        "paid_partnership": boolean,
        "poll": object_of(
            {
                "options": array_of(text(1, 25), 2, 4),
                "duration_minutes": number(5, 10080),
                "reply_settings": REPLY_SETTINGS,
            },
            "options",
            "duration_minutes",
        ),
        "quote_tweet_id": digits,
        "reply": object_of(
            {
                "in_reply_to_tweet_id": digits,
                "exclude_reply_user_ids": array_of(digits, 0, 1000),
                "auto_populate_reply_metadata": boolean,
            },
            "in_reply_to_tweet_id",
        ),
        "reply_settings": REPLY_SETTINGS,
        "share_with_followers": boolean,
    }
)
EXCLUSIVE = ("poll", "quote_tweet_id", "direct_message_deep_link", "media", "card_uri")

MEDIA_INVALID = "Your media IDs are invalid."
DUPLICATE = "You are not allowed to create a Tweet with duplicate content."
NOT_PERMITTED = "You are not permitted to perform this action."


def refuse_combinations(x: XSandbox, body: dict[str, Any]) -> None:
    if sum(name in body for name in EXCLUSIVE) > 1:
        raise problems.invalid(
            x,
            "You can only provide one of poll or quote_tweet_id or direct_message_deep_link or media or card_uri.",
            **{name: body[name] for name in EXCLUSIVE if name in body},
        )
    if ("quote_tweet_id" in body and not x.quotes_allowed) or "edit_options" in body:
        raise problems.forbidden(NOT_PERMITTED)


def check_text(x: XSandbox, account: XAccount, written: str, body: dict[str, Any]) -> None:
    """`written` is normalized. Also checks what depends on it: cashtags, links, the post it replies to."""
    if not written.strip() and "media" not in body:
        raise problems.invalid(x, "text is required when there is no media.", text=written)
    if FORBIDDEN.intersection(written):
        raise problems.invalid(x, "text contains characters that are not allowed.", text=written)
    if weighted_length(written) > account.longest_post:
        if x.too_long_status == 403:
            raise problems.forbidden(NOT_PERMITTED)
        raise problems.invalid(
            x, "Your Tweet text is too long. For more information see the documentation.", text=written
        )
    if len(cashtags(written)) > 1:
        raise problems.forbidden("Posts are limited to a maximum of one cashtag.")
    if x.blocked_hosts and any(link.host in x.blocked_hosts for link in links(written)):
        raise problems.forbidden("The Tweet contains an invalid URL.")
    if "reply" in body:
        _check_reply(x, account, body["reply"]["in_reply_to_tweet_id"])


def refuse_duplicate(x: XSandbox, account: XAccount, written: str, body: dict[str, Any]) -> None:
    reply_to = str(body.get("reply", {}).get("in_reply_to_tweet_id", ""))
    if written and x.was_posted_lately(account, written, reply_to):
        raise problems.forbidden(DUPLICATE)


def _check_reply(x: XSandbox, account: XAccount, parent_id: str) -> None:
    parent = x.find_post(parent_id)
    if parent is None:
        raise problems.forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
    if parent.account_id != account.id and account.username.lower() not in mentions(parent.text):
        raise problems.forbidden(
            "Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by "
            "the author of the post you are replying to."
        )


def check_media(x: XSandbox, account: XAccount, body: dict[str, Any]) -> tuple[XMedia, ...]:
    """The media of the post: 1 to 4 photos, or one GIF, or one video, all usable now and by this account."""
    if "media" not in body:
        return ()
    ids: list[str] = body["media"]["media_ids"]
    found = [x.media.usable(media_id, account.id) for media_id in ids]
    media = tuple(item for item in found if item is not None)
    kinds = {item.category for item in media}
    mixed = len(media) > 1 and kinds != {"tweet_image"}
    if len(media) < len(ids) or len(set(ids)) < len(ids) or mixed:
        raise media_invalid(x, ids)
    return media


def media_invalid(x: XSandbox, ids: list[str]) -> Refusal:
    return problems.invalid_fields(x, [({"media.media_ids": list(ids)}, MEDIA_INVALID)])
