"""Lengths and links are those of X's own library, over every emoji and over generated texts.

Node runs the library, npm's twitter-text 3.1.0. `make endurance` compares everything, and `make test` a sample.
"""

import importlib.util
import json
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from socialpub.providers.comparison import normalize_nfc
from socialpub.providers.x.text import find_links, weigh

ROOT = Path(__file__).parents[4]
LIBRARY = ROOT / ".venv/twitter-text/node_modules/twitter-text"
SCRIPT = ROOT / "tests/twitter_text/parse.cjs"
SEED = 20261128
TEXTS, SAMPLE = 60_000, 2_000

endurance = pytest.mark.endurance


def differences(texts: Iterable[str]) -> list[tuple[str, Any, Any]]:
    """Return each text on which we and the library disagree, with our result and the library's."""
    texts = list(texts)
    assert texts
    if not shutil.which("node"):
        pytest.skip("node is missing; on Debian and Ubuntu: sudo apt install nodejs npm")
    if not LIBRARY.exists():
        pytest.skip("twitter-text is missing: run `make dev` with npm")
    results = subprocess.run(
        ["node", SCRIPT, LIBRARY], input=json.dumps(texts), stdout=subprocess.PIPE, check=True, text=True
    )
    compared = zip(texts, map(ours, texts), json.loads(results.stdout), strict=True)
    return [(text, our, theirs) for text, our, theirs in compared if our != theirs]


def ours(text: str) -> list[Any]:
    weighed, normal = weigh(text), normalize_nfc(text)
    links = [[link.text, units(normal[: link.start])] for link in find_links(normal)]
    assert [link for link, _ in links] == list(weighed.urls)
    return [weighed.length, weighed.valid, weighed.valid_range_end, links]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


# --- emoji -----------------------------------------------------------------------------------------------------------

TONES = [chr(point) for point in range(0x1F3FB, 0x1F400)]
SELECTORS = ["", "\ufe0f", "\ufe0e"]


def installed_sequences() -> list[str]:
    """Return every emoji of the installed Unicode data, which a package of `make dev` brings along."""
    found = importlib.util.find_spec("twitter_text")
    assert found
    assert found.origin
    lines = (Path(found.origin).parent / "regexp/emoji-test.txt").read_text("utf-8").splitlines()
    points = [line.partition(";")[0].split() for line in lines if line and not line.startswith("#")]
    return ["".join(chr(int(point, 16)) for point in row) for row in points]


def emoji_texts() -> Iterator[str]:
    """Yield every emoji with each selector and tone, alone and beside others."""
    sequences = installed_sequences()
    assert len(sequences) > 3000
    young = [chr(point) for point in chain(range(0x1F000, 0x1FB00), range(0x2190, 0x2C00), range(0x3297, 0x329A))]
    for emoji in dict.fromkeys([*sequences, *young, *"#*0123456789©®\ue50a"]):
        for first, second in product(["", *SELECTORS[1:], *TONES], SELECTORS):
            yield f"{emoji}{first}{second}"
        yield f"{emoji}\u200d{emoji}"
        yield f"{emoji}\ufe0f\u200d♀️{emoji}"
        yield f"a{emoji}b\ufe0f{emoji}{TONES[1]}.com"
    regional = [chr(point) for point in range(0x1F1E6, 0x1F200)]
    yield from map("".join, product(regional, regional))
    chance = random.Random(SEED)
    for _ in range(TEXTS):
        yield "\u200d".join(chance.choices(sequences, k=chance.randint(2, 5)))


def test_a_sample_of_emoji_weighs_what_the_library_says():
    assert differences(list(emoji_texts())[::50]) == []


@endurance
def test_every_emoji_weighs_what_the_library_says():
    assert differences(emoji_texts()) == []


# --- texts -----------------------------------------------------------------------------------------------------------

PIECES = [
    *"aZ9.....-_/?#@$: \n()=&!,~日本éßж한“…\"`{|*';%+[]–—。．｡\u00a0\u2066\u202a\u200b\ufeff\uffff\u0301\u0345\u1fbe",
    *("http://", "https://", "HTTP://", "hTTps://", "http:/", "t.co/", "https://t.co/", "com", ".com", "co", ".jp"),
    *(".みんな", "xn--", "XN--", ".xn--ab", ".xn--p1ai", "中国", ".рф", ".РФ", ".გე", ".Გე", ".ελ", ".Kim", ".ſu"),
    *("foo.com", "www.", "localhost", "1.2.3.4", "a_b", "a-b", "-a", "(x)", "path", "e\u0301", "が", "か\u3099"),
    *("OK!。", " 。", "。example.com", "Straße.de", "vermögensberater", ".vermögensberatung", "VERMÖGENSBERATUNG"),
    *("abcdefghijklmnopqrstuvwxyz" * 2, "a" * 55, "a" * 63, "あ" * 30, "ⱥ", "ȿ", "ɀ", "ι", "ᲀ", "K", "ı", "İ"),
    *(":80", ":8080/", "?q=1", "?a=b#c", "#frag", "&c", "mail@", "@name", "＠", "＃", "$AB", "README.md", "a.co/b(c)d"),
    *("😷", "👋🏽", "👨‍👩‍👧‍👦", "🇫🇷", "1️⃣", "❤️", "☺", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🧕🏾", "🤪", "🏳️‍🌈", "👁️‍🗨️", "⚡️", "⚡", "☕︎"),
    *("🐦‍🔥", "𝒜", "\u2028"),
]  # fmt: skip


def generated_texts() -> Iterator[str]:
    chance = random.Random(SEED)
    for _ in range(TEXTS):
        yield "".join(chance.choices(PIECES, k=chance.randint(1, 14)))


def texts_of_every_character() -> Iterator[str]:
    """Yield each character at each place where a link begins, continues or ends."""
    for one in map(chr, chain(range(1, 0xD800), range(0xE000, 0x10000), range(0x10000, 0x30000, 251))):
        if unicodedata.category(one) == "Cn" and one not in "\ufffe\uffff":
            continue  # Node may know its letter case from a later version of Unicode.
        yield f"{one}foo.com b{one}foo.com/ http://a{one}b.co/x{one}y?q={one}z t.co/{one}"
        yield f"http://a.co{one} x.{one}com {one}http://b.co/(a{one})x http://t.co/a{one}"


def test_a_sample_of_texts_has_the_length_and_links_of_the_library():
    assert differences([*generated_texts()][:SAMPLE]) == []
    assert differences(["OK!。example.com", " 。example.com", *list(texts_of_every_character())[::331]]) == []


@endurance
def test_generated_texts_have_the_length_and_links_of_the_library():
    assert differences(generated_texts()) == []


@endurance
def test_every_character_beside_a_link_means_what_the_library_says():
    assert differences(texts_of_every_character()) == []
