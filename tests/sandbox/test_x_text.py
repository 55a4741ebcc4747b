"""Weighted lengths and links of the sandbox's X, held against twitter-text's own cases."""

import time

import pytest
import yaml

from tests.stand_ins.x_text import links, weighted_length, wrap
from tests.support.provider_documents import document

TABLE = [
    ("Hello, world! 👋", 16),
    ("👨‍👩‍👧‍👦", 2),
    ("🇫🇷", 2),
    ("1️⃣", 2),
    ("❤️", 2),
    ("cafe\u0301", 4),
    ("한국", 4),
    ("example.com", 23),
    ("https://example.com/" + "a" * 300, 23),
    ("see README.md", 27),
    ("…", 2),
    ("—", 1),
    ("node.js", 7),
    ("localhost:8000", 14),
    ("1.2.3.4", 7),
    ("me@example.com", 14),
]


@pytest.mark.parametrize(("text", "weight"), TABLE)
def test_lengths_are_those_of_the_table(text: str, weight: int) -> None:
    assert weighted_length(text) == weight


@pytest.mark.parametrize(
    "section", ["WeightedTweetsWithDiscountedEmojiCounterTest", "UnicodeDirectionalMarkerCounterTest"]
)
def test_lengths_pass_the_official_cases(section: str) -> None:
    cases = yaml.safe_load(document("twitter-text", "conformance", "validate.yml").read_text())["tests"][section]
    wrong = [
        case["description"] for case in cases if weighted_length(case["text"]) != case["expected"]["weightedLength"]
    ]
    assert wrong == []


def test_most_official_links_are_found() -> None:
    cases = yaml.safe_load(document("twitter-text", "conformance", "extract.yml").read_text())["tests"]["urls"]
    right = [case for case in cases if [link.url for link in links(case["text"])] == case["expected"]]
    assert len(right) >= 83, "a stand-in may miss a few odd ones"


@pytest.mark.parametrize("pattern", [".", "a.", "http://", "(a.com/(", "$A", "-_", "👨\u200d", "1\ufe0f", "#a", "x@"])
def test_no_text_takes_more_than_its_share_of_time(pattern: str) -> None:
    text = (pattern * 25_000)[:25_000]
    began = time.process_time()
    weighted_length(text)
    wrap(text)
    assert time.process_time() - began < 1.0
