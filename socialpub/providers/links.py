"""The links of a text on every network except X, which has rules of its own.

These links are published without a person who corrects them. So a link covers exactly its URL, and a doubtful URL is no
link. The rules of Bluesky's own app (`@atproto/api`, rich-text/detection.ts) end a link only at white space and begin
it only after white space or `(`. Here quotation marks, punctuation beyond ASCII, symbols and a closing bracket without
its opening one end a link, and a link begins after any character that is not part of a word.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from socialpub.providers.domains import CURRENT_TLDS

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2460-\u24ff\u2776-\u2793\u3005-\u3007\u3040-\u33ff\u3400-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\uff10-\uffdc\U00020000-\U0003ffff"
)
"""Letters that people write directly beside a link: of Thai, Lao, Burmese, Khmer, Chinese, Japanese and Korean, and
numbers in circles."""
_IN_WORD = rf"(?=[^\W_]|[\u0300-\u036f])[^{_UNSPACED}]"
_BEGINS = re.compile(
    rf"(?<!{_IN_WORD})(?<![^\W_]_)(?:(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?://)(?![A-Za-z0-9._~%!$&*+=:-]*+@)"
    rf"|(?<![@＠#＃$%&=+/\\.-])(?P<domain>[A-Za-z][A-Za-z0-9]*+(?:\.[A-Za-z0-9]++)++)(?!{_IN_WORD}|[@＠]|[-_]++\w))"
)
"""A user name before the host, or an e-mail address, is no link."""
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]++\]")
_PORT = re.compile(r":[0-9]{1,5}(?![0-9])")
_ASCII_LABEL = re.compile("[A-Za-z]{2,}+")

_NEVER_IN_URLS = frozenset("\"'`<>\\\x7f")
_MAY_BE_IN_URLS = frozenset("\xb7\u30fb\u200c\u200d\u2010\u2011\u2013")
"""Middle dots, the joiners of Persian and Indic words, hyphens and the dash of `2019–20`."""
_NO_URL_CATEGORIES = ("C", "P", "S", "Z")
"""Controls, punctuation, symbols and spaces beyond ASCII."""
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_ENDS_SENTENCE = ".,;:!?([{|" + "".join(_MAY_BE_IN_URLS)
_MARKUP = frozenset("*_~|-")
"""When one of these is before a URL, its repetition at the end is not part of the URL."""


@dataclass(frozen=True, slots=True)
class WebLink:
    """A link: `text[start:end]`. `url` is complete, with its scheme in lower case."""

    start: int
    end: int
    url: str
    has_scheme: bool


def find_links(text: str) -> Iterator[WebLink]:
    """Yield every link from left to right."""
    at = 0
    while begin := _BEGINS.search(text, at):
        at = begin.end()
        if scheme := begin["scheme"]:
            host_end = _host_end(text, begin.end())
            if host_end == begin.end():
                continue
        elif begin["domain"].rpartition(".")[2] in CURRENT_TLDS:
            host_end = begin.end()
        else:
            continue
        at = _url_end(text, begin.start(), host_end)
        written = text[begin.start() : at]
        url = scheme.lower() + written[len(scheme) :] if scheme else f"https://{written}"
        yield WebLink(begin.start(), at, url, bool(scheme))


def _host_end(text: str, start: int) -> int:
    """Return the end of the host that begins at `start`, or `start` if there is none."""
    if address := _IPV6.match(text, start):
        return address.end()
    end = label = start
    for at in range(start, len(text)):
        if _is_in_label(text[at]):
            end = at + 1
        elif text[at] == "." and end == at > label:
            label = at + 1
        elif text[at] not in "-_" or at == label:
            break
    if label < end and (ascii_label := _ASCII_LABEL.match(text, label, end)) and ascii_label[0].lower() in CURRENT_TLDS:
        # A word in another script may follow directly.
        after = text[ascii_label.end() : end]
        return ascii_label.end() if after and not after[0].isascii() and label > start else end
    return end


def _is_in_label(character: str) -> bool:
    return character.isalnum() or (character > "\x7f" and unicodedata.category(character) in ("Mn", "Mc"))


def _url_end(text: str, start: int, host_end: int) -> int:
    """Return the end of the URL that begins at `start`."""
    host_end += text.startswith("./", host_end)
    if port := _PORT.match(text, host_end):
        host_end = port.end()
    if text[host_end : host_end + 1] not in ("/", "?", "#"):
        return host_end
    end, opened = host_end, dict.fromkeys(_BRACKETS.values(), 0)
    while end < len(text) and _is_in_url(text[end]):
        if text[end] in opened:
            opened[text[end]] += 1
        elif opening := _BRACKETS.get(text[end]):
            if not opened[opening]:
                break
            opened[opening] -= 1
        end += 1
    before = text[start - 1 : start]
    dropped = _ENDS_SENTENCE + before if before in _MARKUP else _ENDS_SENTENCE
    return host_end + len(text[host_end:end].rstrip(dropped))


def _is_in_url(character: str) -> bool:
    if character.isascii():
        return character > " " and character not in _NEVER_IN_URLS
    return character in _MAY_BE_IN_URLS or unicodedata.category(character)[0] not in _NO_URL_CATEGORIES
