"""A pin as Pinterest shows it: the image, then title, description and where a click leads."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.providers import preview
from socialpub.providers.base import Account, Content
from socialpub.providers.pinterest import limits
from socialpub.providers.preview import Preview, TextMeasure, utf16_units

_TAG = re.compile(r"(?<![\w@#&/])[@#](?=[\d_]*+[^\W\d_])\w+")
DESCRIPTION_START = 50
"""About as much as a pin shows before “more” (Pinterest's help: the first 50 to 60 characters)."""

_DISCLOSED = {"AI_MODIFIED": "AI modified", "SYNTHETIC_PERFORMER": "Synthetic performer"}


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG001
    first, rest = preview.cut(preview.within(content.text, limits.DESCRIPTION_UNITS), DESCRIPTION_START)
    return Preview(
        text=_parts(first),
        more=_parts(rest),
        title=str(options.get("title", "")),
        link=preview.host(str(options.get("link", ""))),
        media=_shown_media(content),
        labels=tuple(_DISCLOSED[name] for name in options.get("aiDisclosures", ()) if name in _DISCLOSED),
        remarks=tuple(_remarks(content, options)),
        measures=tuple(_measures(content, options)),
    )


def _parts(text: str) -> tuple[preview.TextPart, ...]:
    return preview.parts(text, [*preview.written_links(text), *preview.tags(_TAG.finditer(text))])


def _shown_media(content: Content) -> tuple[int, ...]:
    """Return the video alone, or the images of a carousel."""
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
        yield "The first picture stands for the pin in feeds and on the board; readers swipe to the others."
    if not options.get("title"):
        yield "Without a title the pin shows none; a title helps to find it."
    if not options.get("link"):
        yield "A click on the picture leads nowhere: the pin has no link."
