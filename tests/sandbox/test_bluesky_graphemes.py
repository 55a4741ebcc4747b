"""Two counters of graphemes, written apart, agree: the product's with Unicode's tables, the sandbox's without."""

import random

import pytest

from socialpub.providers.bluesky.graphemes import count_graphemes as count_by_tables
from tests.stand_ins.graphemes import count_graphemes

SINGLE = {
    "e and an accent": "e\u0301",
    "a line end": "\r\n",
    "a flag": "🇩🇪",
    "a family": "👨‍👩‍👧‍👦",
    "a skin tone": "👍🏽",
    "a keycap": "1️⃣",
    "a flag of tags": "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "a burning heart": "❤️‍🔥",
    "Hangul": "각",
    "Hangul in parts": "\u1100\u1161\u11a8",
    "Devanagari": "क्ष",
    "Bengali": "ক্ষ",
    "Thai": "ก\u0e33",
}
APART = [
    "a",
    " ",
    "\n",
    "\r",
    "é",
    "\u200d",
    "\u200c",
    "\u200b",
    "🇫",
    "\ufe0f",
    "©",
    "க",
    "கா",
    "நி",
    "ക്",
    "ទ្ធ",
    "\u0600",
]
ROUNDS = 3000


@pytest.mark.parametrize("text", SINGLE.values(), ids=SINGLE)
def test_what_readers_take_for_one_sign_is_one(text: str) -> None:
    assert count_graphemes(text) == 1
    assert count_graphemes(text * 3) == 3


def test_both_counters_agree_on_mixed_texts() -> None:
    drawn = random.Random(5)
    pool = [*SINGLE.values(), *APART]
    for _ in range(ROUNDS):
        text = "".join(drawn.choices(pool, k=drawn.randint(1, 8)))
        assert count_graphemes(text) == count_by_tables(text), ascii(text)
