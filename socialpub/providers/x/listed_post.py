"""Whether a post of the account's list could be the one that was sent.

Kind where X writes differently what it was given; strict where another post would be taken for ours: account, what is
replied to or quoted, kind and number of media. What the list leaves out or shows as null says nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.providers.content import Account, Content
from socialpub.providers.responses import object_at, text_at
from socialpub.providers.x.plan import in_chunks
from socialpub.providers.x.shown_text import SHORT_LINK, SentText, ShownText

KINDS = {"3": "picture", "7": "video", "13": "video", "16": "GIF"}
"""By the beginning of a media_key; any other beginning tells no kind."""
MEDIA_KEY = re.compile(r"([0-9]+)_")
MEDIA_PAGE = re.compile(r"/status/([0-9]+)/(?:photo|video)/[0-9]+/?$")
ENDS_OPEN = re.compile(rf"(?:…|{SHORT_LINK.pattern})\s*+$")


@dataclass(frozen=True, slots=True)
class SentPost:
    """What was sent, ready to be compared with many."""

    account_id: str
    text: SentText
    kinds: tuple[str, ...]
    """Of its media, in order."""
    replies_to: str | None
    quotes: str | None

    @classmethod
    def of(cls, content: Content, chosen: Mapping[str, Any], account: Account) -> "SentPost":
        kinds = tuple(
            "video" if media.kind == "video" else "GIF" if in_chunks(media) else "picture" for media in content.media
        )
        replies_to, quotes = chosen.get("inReplyToPostId"), chosen.get("quotePostId")
        return cls(account.id, SentText.of(content.text), kinds, replies_to, quotes)

    def could_be(self, post: Any) -> bool:
        """Whether nothing that this post of the list tells speaks against it."""
        if not isinstance(post, dict) or not re.fullmatch(r"[0-9]{1,19}", str(post.get("id"))):
            return False
        if str(post.get("author_id") or self.account_id) != self.account_id:
            return False
        return self._place_fits(post) and self._media_fit(post) and self._text_fits(post)

    def _place_fits(self, post: dict[str, Any]) -> bool:
        """Where it stands: under which post, around which one."""
        references = dict(_references(post))
        if self.quotes and references.get("quoted", self.quotes) != self.quotes:
            return False
        if "replied_to" in references:
            return references["replied_to"] == self.replies_to
        is_reply = _is_reply(post, references)
        return is_reply is None or is_reply == bool(self.replies_to)

    def _media_fit(self, post: dict[str, Any]) -> bool:
        keys = object_at(post, "attachments").get("media_keys")
        if isinstance(keys, list):
            return len(keys) == len(self.kinds) and self._kinds_fit(keys)
        marked = [link for link in _links(post) if _is_media_of(link, post)]
        if marked:
            return bool(self.kinds) and self._kinds_fit([link.get("media_key") for link in marked])
        # X leaves out what is empty, but a field that failed it leaves out too: the text of a post with media ends with
        # their link all the same.
        none_told = "created_at" in post and "attachments" not in post and not ENDS_OPEN.search(_written(post))
        return not (none_told and self.kinds)

    def _kinds_fit(self, keys: list[Any]) -> bool:
        begun = (MEDIA_KEY.match(str(key)) for key in keys)
        return {KINDS[match[1]] for match in begun if match and match[1] in KINDS} <= set(self.kinds)

    def _text_fits(self, post: dict[str, Any]) -> bool:
        note = object_at(post, "note_post") or object_at(post, "note_tweet")
        whole = note if isinstance(note.get("text"), str) else post
        links = [*_links(post), *_links(whole)]
        targets = {link["url"]: link["expanded_url"] for link in links if isinstance(link.get("expanded_url"), str)}
        shown = ShownText(
            _written(whole),
            targets,
            appended=frozenset(link["url"] for link in links if self._is_appended(link)),
            # A link that nobody explained may be the one that X appends.
            may_append=bool(self.kinds or self.quotes),
            cut=whole is post,
        )
        same_parent = bool(self.replies_to) and dict(_references(post)).get("replied_to") == self.replies_to
        return self.text.is_shown_by(shown, names_in_front=same_parent)

    def _is_appended(self, link: dict[str, Any]) -> bool:
        """Whether X adds this link to the text: that of the media, or of the quoted post."""
        target = str(link.get("expanded_url")).split("?", 1)[0].rstrip("/")
        if self.kinds and ("media_key" in link or MEDIA_PAGE.search(target)):
            return True
        return bool(self.quotes) and target.endswith(f"/status/{self.quotes}")


def _references(post: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind of reference and id, in either generation's names."""
    listed = post.get("referenced_posts") or post.get("referenced_tweets")
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("type") and one.get("id"):
            yield str(one["type"]), str(one["id"])


def _is_reply(post: dict[str, Any], references: Mapping[str, str]) -> bool | None:
    """None: it is not told."""
    conversation = post.get("conversation_id")
    if conversation:
        # An edited post keeps the conversation that its first version began.
        versions = post.get("edit_history_post_ids") or post.get("edit_history_tweet_ids")
        begun = [post["id"], *(versions if isinstance(versions, list) else [])]
        return str(conversation) not in map(str, begun)
    return False if references else None


def _is_media_of(link: dict[str, Any], post: dict[str, Any]) -> bool:
    page = MEDIA_PAGE.search(str(link.get("expanded_url")))
    return bool(link.get("media_key")) or (page is not None and page[1] == str(post["id"]))


def _links(holder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    urls = object_at(holder, "entities").get("urls")
    for link in urls if isinstance(urls, list) else []:
        if isinstance(link, dict) and SHORT_LINK.fullmatch(str(link.get("url"))):
            yield link


def _written(holder: dict[str, Any]) -> str:
    return text_at(holder, "text") or ""
