"""A post as X shows it: links without their scheme and cut, the first 280 units of a long text, four pictures."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.providers import preview
from socialpub.providers.base import Account, Content
from socialpub.providers.comparison import nfc
from socialpub.providers.preview import Preview, TextMark, TextMeasure, TextPart
from socialpub.providers.x import limits
from socialpub.providers.x.limits import in_chunks
from socialpub.providers.x.text import find_links, weigh

_TAG = re.compile(
    r"(?<![\w@#$&/])(?:@[A-Za-z0-9_]{1,15}(?![\w@])|[#＃](?=[\d_]*+[^\W\d_])\w+|\$[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?(?!\w))"
)
MAX_LINK_LENGTH = 26
"""X shows this many characters of a link and an ellipsis, but always the whole host."""
UNIT = "characters as X counts them: a link 23, an emoji or a CJK character 2"


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:
    allowed = limits.entitlement(account.facts).text_length
    text = nfc(content.text)
    length = weigh(content.text).length
    first, rest = _first_screen(text)
    remarks = []
    if length > allowed:
        # X would never show the rest.
        rest = ""
        remarks.append(f"X takes {allowed} of these {length} characters: only what fits is shown here.")
    elif rest:
        remarks.append(f"Readers see the first {limits.TEXT_LENGTH} characters until they choose “Show more”.")
    shown = _shown_media(content)
    if len(shown) < len(content.media):
        what = "one picture" if len(shown) == 1 else f"{len(shown)} pictures"
        what = "the video or the animated GIF alone" if content.media and in_chunks(content.media[shown[0]]) else what
        remarks.append(f"X takes {what}: the other media would have to go.")
    return Preview(
        text=_parts(first),
        more=_parts(rest),
        media=shown,
        labels=tuple(_labels(options)),
        remarks=tuple(remarks),
        measures=(TextMeasure("Text", length, allowed, UNIT),),
    )


def _first_screen(text: str) -> tuple[str, str]:
    weighed = weigh(text)
    if weighed.length <= limits.TEXT_LENGTH:
        return text, ""
    first = preview.within(text, weighed.valid_range_end + 1)
    return first, text[len(first) :]


def _parts(text: str) -> tuple[TextPart, ...]:
    marks = [TextMark(link.start, link.start + len(link.text), _link(link.text), "link") for link in find_links(text)]
    return preview.parts(text, [*marks, *preview.tags(_TAG.finditer(text))])


def _link(written: str) -> str:
    shown = written.partition("://")[2] or written
    shown = shown.removeprefix("www.")
    longest = max(MAX_LINK_LENGTH, len(preview.host(f"https://{shown}")))
    return shown if len(shown) <= longest + 1 else f"{shown[:longest]}…"


def _shown_media(content: Content) -> tuple[int, ...]:
    moving = next((item.position for item in content.media if in_chunks(item)), None)
    return (moving,) if moving is not None else tuple(item.position for item in content.media[: limits.PHOTOS])


def _labels(options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("paidPartnership"):
        yield "Paid partnership"
    if options.get("madeWithAi"):
        yield "Made with AI"
