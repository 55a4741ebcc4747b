"""A post as X shows it: shortened links, the first 280 units of a long text, at most four images."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.providers import preview
from socialpub.providers.auth import Account
from socialpub.providers.base import Content
from socialpub.providers.comparison import normalize_nfc
from socialpub.providers.preview import Preview, TextMark, TextMeasure, TextPart
from socialpub.providers.x import limits
from socialpub.providers.x.limits import needs_chunks
from socialpub.providers.x.text import find_links, weigh

_TAG = re.compile(
    r"(?<![\w@#$&/])(?:@[A-Za-z0-9_]{1,15}(?![\w@])|[#＃](?=[\d_]*+[^\W\d_])\w+|\$[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?(?!\w))"
)
MAX_LINK_LENGTH = 26
"""X cuts a link after this many characters, but always shows the whole host."""
UNIT = "characters as X counts them: a link 23, an emoji or a CJK character 2"


def preview_post(content: Content, options: Mapping[str, Any], account: Account) -> Preview:
    allowed = limits.entitlement(account.facts).text_length
    text = normalize_nfc(content.text)
    length = weigh(content.text).length
    first, rest = _first_screen(text)
    remarks = []
    if length > allowed:
        rest = ""
        remarks.append(f"X accepts {allowed} of these {length} characters. This preview shows only the part that fits.")
    elif rest:
        remarks.append(f"Readers see the first {limits.TEXT_LENGTH} characters until they choose “Show more”.")
    positions = _shown_media(content)
    if len(positions) < len(content.media):
        alone = needs_chunks(content.media[positions[0]])
        what = "a video or an animated GIF only without other media" if alone else f"at most {len(positions)} images"
        remarks.append(f"X accepts {what}. Remove the other media.")
    return Preview(
        text=_parts(first),
        more=_parts(rest),
        media=positions,
        labels=tuple(_labels(options)),
        remarks=tuple(remarks),
        measures=(TextMeasure("Text", length, allowed, UNIT),),
    )


def _first_screen(text: str) -> tuple[str, str]:
    weighed = weigh(text)
    if weighed.length <= limits.TEXT_LENGTH:
        return text, ""
    first = preview.truncate(text, weighed.valid_range_end + 1)
    return first, text[len(first) :]


def _parts(text: str) -> tuple[TextPart, ...]:
    marks = [TextMark(link.start, link.start + len(link.text), _link(link.text), "link") for link in find_links(text)]
    return preview.split_by_marks(text, [*marks, *preview.mark_tags(_TAG.finditer(text))])


def _link(written: str) -> str:
    address = written.partition("://")[2] or written
    address = address.removeprefix("www.")
    longest = max(MAX_LINK_LENGTH, len(preview.read_host(f"https://{address}")))
    return address if len(address) <= longest + 1 else f"{address[:longest]}…"


def _shown_media(content: Content) -> tuple[int, ...]:
    moving = next((item.position for item in content.media if needs_chunks(item)), None)
    return (moving,) if moving is not None else tuple(item.position for item in content.media[: limits.PHOTOS])


def _labels(options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("paidPartnership"):
        yield "Paid partnership"
    if options.get("madeWithAi"):
        yield "Made with AI"
