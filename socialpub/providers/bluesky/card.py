"""Link cards: the first link of a post without media, with the title, the description and the image of its page.

No server makes cards, so the adapter reads the page. A page that cannot be read never fails the post: the post then has
no card, and a note says why. The page is foreign text of megabytes, so each pattern reads it once.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from urllib.parse import urljoin

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import (
    LINK_CARD,
    Content,
    Done,
    Fetched,
    ImageLimits,
    Job,
    MediaFile,
    Memo,
    NotFetched,
    Outcome,
)
from socialpub.providers.bluesky import client, limits, upload
from socialpub.providers.bluesky.graphemes import cut_graphemes
from socialpub.providers.bluesky.text import first_link, sent_text
from socialpub.providers.preview import read_host
from socialpub.providers.responses import ProviderError

PAGE_BYTES = 5_000_000
PAGE_TYPES = ("text/html", "application/xhtml+xml")
_UNKNOWN_TYPES = ("", "*/*", "unknown/unknown", "application/unknown")
_MAX_IMAGES = 4
_VALUE_CHARACTERS = 10_000
_TITLES = ("og:title", "twitter:title", "<title>")
_DESCRIPTIONS = ("og:description", "twitter:description", "description")
_IMAGES = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "twitter:image:src")

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|noscript|template|svg|textarea)\b.*?(?:</\1|\Z)"
    r"|<title\b[^<>]*+>(?P<title>[^<]*+)"
    r"|<(?P<name>meta|base)\b(?P<attributes>(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)",
    re.IGNORECASE | re.DOTALL,
)
"""The parts of a page that matter, and those in which the others do not count."""
_ATTRIBUTE = re.compile(
    r"(?<![^\s/\"'])([a-zA-Z:-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>=`]++))", re.DOTALL
)
_LOOKS_LIKE_PAGE = re.compile(
    r"\s*+(?:(?:<!--.*?-->|<\?xml\b[^>]*+>)\s*+)*+<(?:!doctype\s++html|html|head|title|meta|body|script|style|link|base)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(rb"(?:charset|<\?xml[^>]{1,50}?encoding)\s*+=\s*+[\"']?([A-Za-z0-9_.:-]++)", re.IGNORECASE)
_CHARSETS = re.compile(
    r"utf-?(?:8|16(?:[lb]e)?)|us-ascii|latin-?1|iso-?8859-\d{1,2}|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]|big5(?:-hkscs)?"
    r"|(?:x-)?s(?:hift[_-])?jis|euc-(?:jp|kr)|iso-2022-jp|gb(?:2312|k|18030)|tis-620|mac-?roman",
    re.IGNORECASE,
)
_READ_AS = {
    **dict.fromkeys(("us-ascii", "latin1", "latin-1", "iso-8859-1", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "iso8859-9"), "cp1254"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "tis-620": "cp874",
}
"""Names that mean a larger character set on web pages (WHATWG Encoding)."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f\ufffd]")
_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff]++")


@dataclass(frozen=True, slots=True)
class PageSummary:
    title: str = ""
    description: str = ""
    images: tuple[str, ...] = ()
    """Absolute URLs of the same image or of others. The first that loads counts."""


def card_link(content: Content, options: Mapping[str, Any]) -> str | None:
    """Return the link that becomes a card. None: the post has no card."""
    if content.media or not options.get("linkCard", True):
        return None
    return first_link(sent_text(content.text))


def read_card(
    link: str, fetch: Callable[[str, int], Fetched], fetch_image: Callable[[str, ImageLimits], MediaFile]
) -> Memo:
    """Return the card of a page: its texts and its stored image, or a note about what is missing."""
    try:
        fetched = fetch(link, PAGE_BYTES)
        if not is_page(fetched):
            raise NotFetched("The link does not lead to an HTML page.")
        page = read_page(fetched.body, fetched.charset, fetched.url)
    except NotFetched as failure:
        return {"uri": link, "note": f"The post has no link card. {failure}"}
    card = {"uri": link, "title": page.title or read_host(link), "description": page.description}
    if not page.images:
        return card
    try:
        image = fetch_first(page.images, fetch_image)
    except NotFetched as failure:
        return {**card, "note": f"The link card has no image. {failure}"}
    return {**card, "image": {"name": image.path.name, "type": image.mime_type, "bytes": image.size_bytes}}


def attach_card(job: Job, section: BlueskySection) -> Outcome:
    """Put the card into the memo, or a note about why there is none.

    A card that the owner has approved is sent as it was approved, or not at all.
    """
    link = card_link(job.content, job.options)
    if link is None or job.memo.get("card"):
        return Done(job.memo)
    approved = job.memo.get(LINK_CARD, {})
    is_approved = approved.get("uri") == link and "unread" not in approved
    read = approved if is_approved else read_card(link, job.fetch, job.fetch_image)
    memo = client.add_note(job.memo, read["note"]) if "note" in read else job.memo
    if "title" not in read:
        return Done(memo)
    card = {name: read[name] for name in ("uri", "title", "description")}
    if "image" not in read:
        return Done({**memo, "card": card})
    try:
        return Done({**memo, "card": {**card, "thumb": _upload_image(job, section, read["image"])}})
    except ProviderError as error:
        again = client.ask_again(job.memo, "The image of the link card", error)
        if again is not None:
            return again
        failure = error.message
    except FileNotFoundError:
        failure = "Its file is missing."
    if is_approved:
        sentence = f"The post has no link card, because the approved card has an image. {failure}"
        return Done(client.add_note(memo, sentence))
    return Done({**client.add_note(memo, f"The link card has no image. {failure}"), "card": card})


def _upload_image(job: Job, section: BlueskySection, image: Memo) -> dict[str, Any]:
    """Return the blob of a stored image. Raises ProviderError, FileNotFoundError."""
    path = job.kept_file(image["name"])
    path.stat()
    file = MediaFile(0, "image", image["type"], image["bytes"], path, path.name)
    response = upload.send(job, section, file)
    if not response.ok:
        raise client.classify(response, now=job.wall_now, sent_bytes=True)
    return upload.read_blob(response)


def is_page(fetched: Fetched) -> bool:
    """Return whether this is an HTML page. Without a content type, its beginning decides."""
    if fetched.content_type not in _UNKNOWN_TYPES:
        return fetched.content_type in PAGE_TYPES
    return _LOOKS_LIKE_PAGE.match(_decode(fetched.body[:2000], fetched.charset)) is not None


def fetch_first(images: Sequence[str], fetch_image: Callable[[str, ImageLimits], MediaFile]) -> MediaFile:
    """Return the first image that loads. Raises the `NotFetched` of the first image."""
    failures = []
    for image in images:
        try:
            return fetch_image(image, limits.THUMB)
        except NotFetched as failure:
            failures.append(failure)
    raise failures[0]


def read_page(body: bytes, charset: str | None, url: str) -> PageSummary:
    """Return what the head of a page says about the page. `charset` is that of the response."""
    values: dict[str, list[str]] = {}
    for token in _TOKEN.finditer(_decode(body, charset)):
        if token["title"] is not None:
            values.setdefault("<title>", []).append(token["title"])
        elif token["attributes"]:
            attributes = _read_attributes(token["attributes"])
            if token["name"].lower() == "base":
                values.setdefault("<base>", []).append(attributes.get("href", ""))
            elif name := attributes.get("property") or attributes.get("name"):
                values.setdefault(name.strip().lower(), []).append(attributes.get("content", ""))
    base = _absolute(next(_texts(values, ("<base>",)), ""), url) or url
    images = filter(None, (_absolute(image, base) for image in _texts(values, _IMAGES)))
    return PageSummary(
        cut_graphemes(next(_texts(values, _TITLES), ""), limits.CARD_TITLE_GRAPHEMES),
        cut_graphemes(next(_texts(values, _DESCRIPTIONS), ""), limits.CARD_DESCRIPTION_GRAPHEMES),
        tuple(islice(dict.fromkeys(images), _MAX_IMAGES)),
    )


def _decode(body: bytes, charset: str | None) -> str:
    """Return the text of a page. Its first bytes count, then the response, then the page itself."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, errors="replace")
    stated = _CHARSET.search(body, 0, 2048)
    inside = stated[1].decode("ascii").lower() if stated else ""
    # ASCII was readable so far. So the page is not in UTF-16, even if it names UTF-16.
    for encoding in ((charset or "").lower(), "utf-8" if inside.startswith("utf-16") else inside):
        if _CHARSETS.fullmatch(encoding):
            try:
                return body.decode(_READ_AS.get(encoding, encoding), errors="replace")
            except LookupError:
                continue
    text = body.decode(errors="replace")
    is_utf8 = "\ufffd" not in text or _BEYOND_ASCII.search(text)
    return text if is_utf8 else body.decode("cp1252", errors="replace")


def _read_attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        attributes.setdefault(name.lower(), "".join(values)[:_VALUE_CHARACTERS])
    return attributes


def _texts(found: Mapping[str, list[str]], names: tuple[str, ...]) -> Iterator[str]:
    """Yield what the page says under these names, the best first."""
    for value in chain.from_iterable(found.get(name, ()) for name in names):
        if text := _UNSHOWN.sub(" ", html.unescape(value[:_VALUE_CHARACTERS])).strip():
            yield text


def _absolute(image: str, url: str) -> str | None:
    try:
        address = urljoin(url, image)
    except ValueError:
        return None
    return address if image and address.lower().startswith(("http://", "https://")) else None
