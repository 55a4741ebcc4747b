"""A post as Bluesky shows it: marked links, mentions and hashtags, at most four images, and content warnings."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from socialpub.providers import preview
from socialpub.providers.auth import Account
from socialpub.providers.base import Content
from socialpub.providers.bluesky import limits
from socialpub.providers.bluesky import options as own_options
from socialpub.providers.bluesky.card import card_link
from socialpub.providers.bluesky.graphemes import count_graphemes, split_graphemes
from socialpub.providers.bluesky.text import MarkKind, find_marks, sent_text
from socialpub.providers.preview import Preview, TextMark, TextMeasure, TextPart

_REPLIES = {
    "followers": "Followers may reply",
    "following": "People the author follows may reply",
    "mentioned": "Mentioned people may reply",
    "nobody": "Replies are turned off",
}


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG001
    text = sent_text(content.text)
    length = count_graphemes(text)
    positions = _shown_media(content)
    card = card_link(content, options)
    remarks = []
    if length > limits.TEXT_GRAPHEMES:
        text = "".join(islice(split_graphemes(text), limits.TEXT_GRAPHEMES))
        remarks.append(
            f"Bluesky accepts {limits.TEXT_GRAPHEMES} of these {length} characters. This preview shows only the part "
            "that fits."
        )
    if len(positions) < len(content.media):
        what = "a video only without other media" if content.has_video else f"at most {limits.IMAGES} images"
        remarks.append(f"Bluesky accepts {what}. Remove the other media.")
    if card:
        remarks.append("The link becomes a card with the page's title, description and image.")
    return Preview(
        text=_parts(text),
        link=preview.read_host(card or ""),
        media=positions,
        labels=tuple(_labels(options)),
        remarks=tuple(remarks),
        measures=(TextMeasure("Text", length, limits.TEXT_GRAPHEMES),),
    )


def _parts(text: str) -> tuple[TextPart, ...]:
    marks = [
        TextMark(mark.start, mark.end, text[mark.start : mark.end], "link" if mark.kind is MarkKind.LINK else "tag")
        for mark in find_marks(text)
    ]
    return preview.split_by_marks(text, marks)


def _shown_media(content: Content) -> tuple[int, ...]:
    for item in content.media:
        if item.kind == "video":
            return (item.position,)
    return tuple(item.position for item in content.media[: limits.IMAGES])


def _labels(options: Mapping[str, Any]) -> Iterator[str]:
    for name in options.get("contentLabels", ()):
        if name in own_options.CONTENT_LABELS:
            yield own_options.CONTENT_LABELS[name]
    if options.get("replyControl") in _REPLIES and not own_options.is_reply(options):
        yield _REPLIES[options["replyControl"]]
