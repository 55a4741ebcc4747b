"""X's length of a text: the official cases of twitter-text, and the time that a hostile text takes."""

import unicodedata
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from socialpub.providers.domains import TLDS
from socialpub.providers.x import text as x_text
from socialpub.providers.x.text import weigh
from tests.support.generated import examples
from tests.support.provider_documents import document


def conformance(file: str, section: str) -> list[dict[str, Any]]:
    path = document("twitter-text", "conformance", file)
    cases: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))["tests"][section]
    return cases


@pytest.mark.parametrize(
    ("section", "count"),
    [("WeightedTweetsWithDiscountedEmojiCounterTest", 22), ("UnicodeDirectionalMarkerCounterTest", 2)],
)
def test_every_official_case_has_the_official_weight(section, count):
    cases = conformance("validate.yml", section)
    assert len(cases) == count
    for case in cases:
        weighed, expected = weigh(case["text"]), case["expected"]
        assert (weighed.length, weighed.valid, weighed.valid_range_end) == (
            expected["weightedLength"],
            expected["valid"],
            expected["validRangeEnd"],
        ), case["description"]


@pytest.mark.parametrize("section", ["urls", "tco_urls_with_params"])
def test_exactly_the_links_of_the_official_cases_are_found(section):
    for case in conformance("extract.yml", section):
        assert list(weigh(case["text"]).urls) == case["expected"], case["description"]


@pytest.mark.parametrize("section", ["urls_with_indices", "urls_with_directional_markers"])
def test_links_are_found_where_the_official_cases_have_them(section):
    for case in conformance("extract.yml", section):
        found = [(link.text, [link.start, link.start + len(link.text)]) for link in x_text.find_links(case["text"])]
        expected = [(link["url"], link["indices"]) for link in case["expected"]]
        assert found == expected, case["description"]


def test_exactly_the_cashtags_of_the_official_cases_are_found():
    for case in conformance("extract.yml", "cashtags"):
        assert list(weigh(case["text"]).cashtags) == case["expected"], case["description"]


def test_exactly_the_mentions_of_the_official_cases_are_found():
    for case in conformance("extract.yml", "mentions"):
        assert list(weigh(case["text"]).mentions) == case["expected"], case["description"]


def test_a_name_in_a_link_is_no_mention():
    assert weigh("https://example.com/@demo and a@b.de and example.com/@x, @you").mentions == ("you",)


@pytest.mark.parametrize("section", ["country", "generic"])
def test_every_official_top_level_domain_makes_a_link(section):
    for case in conformance("tlds.yml", section):
        assert list(weigh(case["text"]).urls) == case["expected"], case["description"]


def test_the_list_of_top_level_domains_is_the_official_one():
    lists = yaml.safe_load(document("twitter-text", "conformance", "tld_lib.yml").read_text("utf-8"))
    assert frozenset(lists["country"]) | frozenset(lists["generic"]) == TLDS


def test_an_empty_text_and_one_too_long_are_not_valid():
    assert not weigh("").valid
    assert weigh("x" * 280).valid
    assert not weigh("x" * 281).valid
    assert weigh("x" * 281).valid_range_end == 279


def test_an_invalid_character_is_named_as_such():
    weighed = weigh("fine\ufffe")
    assert weighed.invalid_characters
    assert not weighed.valid


def test_a_bare_domain_costs_like_a_link_because_x_makes_one_of_it():
    assert weigh("see README.md").urls
    assert not weigh("see README.txt").urls


CHARACTERS = 50_000

HOSTILE = {
    "dots": ".",
    "label chain": "a.",
    "long labels": "abc-d_e.",
    "schemes": "http://",
    "at signs": "@",
    "CJK and dots": "日本.",
    "one label": "日",
    "underscores": "_",
    "short links": "a.co/!",
    "queries": "a.co??",
    "open parentheses": "a.co/(",
    "punycode": "xn--a.",
    "punycode domains": "a.xn--b日.",
    "domains inside a domain": "日a.com",
    "joined emoji": "👨‍👩‍👧",
    "keycaps": "1\ufe0f",
    "flags": "🇫",
    "tags": "🏴\U000e0067",
    "cashtags": "$A ",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_text_of_50000_characters_is_weighed_at_once(unit):
    # In quadratic time, each of these would take minutes.
    text = (unit * CHARACTERS)[:CHARACTERS] + ".com"
    assert weigh(text).length > 0


def test_long_rows_of_combining_marks_are_put_in_order_before_the_library_sees_them():
    text = "a" + "\u0301" * (CHARACTERS // 2) + "\u0316" * (CHARACTERS // 2)
    assert weigh(text).length == CHARACTERS


@settings(max_examples=examples(300, 5000))
@given(text=st.text(alphabet="aé\u0301\u0316\u0327\u0344ộ한\u1100\u1161\u11a8か\u3099", max_size=12))
def test_putting_marks_in_order_changes_nothing_about_the_normal_form(text):
    from socialpub.providers.comparison import normalize_nfc

    assert normalize_nfc(text) == unicodedata.normalize("NFC", text)
