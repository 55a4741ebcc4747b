"""A pin as Pinterest shows it: the image, the title, the description and the link."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.providers import preview
from socialpub.providers.auth import Account
from socialpub.providers.base import Content
from socialpub.providers.pinterest import limits
from socialpub.providers.preview import Preview, TextMeasure, utf16_units

_TAG = re.compile(r"(?<![\w@#&/])[@#](?=[\d_]*+[^\W\d_])\w+")
DESCRIPTION_START = 50
"""The length before “more” (Pinterest's help: the first 50 to 60 characters)."""

_DISCLOSED = {"AI_MODIFIED": "AI modified", "SYNTHETIC_PERFORMER": "Synthetic performer"}


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG001
    first, rest = preview.split_text(preview.truncate(content.text, limits.DESCRIPTION_UNITS), DESCRIPTION_START)
    return Preview(
        text=_parts(first),
        more=_parts(rest),
        title=str(options.get("title", "")),
        link=preview.read_host(str(options.get("link", ""))),
        media=_shown_media(content),
        labels=tuple(_DISCLOSED[name] for name in options.get("aiDisclosures", ()) if name in _DISCLOSED),
        remarks=tuple(_remarks(content, options)),
        measures=tuple(_measures(content, options)),
    )


def _parts(text: str) -> tuple[preview.TextPart, ...]:
    return preview.split_by_marks(text, [*preview.mark_links(text), *preview.mark_tags(_TAG.finditer(text))])


def _shown_media(content: Content) -> tuple[int, ...]:
    for item in content.media:
        if item.kind == "video":
            return (item.position,)
    return tuple(item.position for item in content.media[: limits.CAROUSEL[1]])


def _measures(content: Content, options: Mapping[str, Any]) -> Iterator[TextMeasure]:
    yield TextMeasure("Description", utf16_units(content.text), limits.DESCRIPTION_UNITS)
    title = options.get("title")
    if isinstance(title, str):
        yield TextMeasure("Title", utf16_units(title), limits.TITLE_UNITS)


def _remarks(content: Content, options: Mapping[str, Any]) -> Iterator[str]:
    if len(content.media) > 1 and not content.has_video:
        yield "Feeds and the board show the first image. Readers swipe to the other images."
    if not options.get("title"):
        yield "The pin has no title. A title helps people to find the pin."
    if not options.get("link"):
        yield "The pin has no link, so a click on the image does not open a page."
