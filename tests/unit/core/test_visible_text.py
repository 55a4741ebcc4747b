"""What would steer a terminal is spelled out; what people write stays as it is."""

import json
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.core.secrets.redaction import visible, visible_json

STEERS = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def steers(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in STEERS}


def test_every_character_that_steers_is_spelled_out() -> None:
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in STEERS:
            assert visible(f"a{char}b") == f"a{repr(char)[1:-1]}b"


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם",
        "مرحبا بالعالم",
        "Ça va\u00a0?",
        "日本語",
        "👩\u200d👩\u200d👧 ❤️\u200d🔥 🏳️\u200d🌈",
        "naïve café [red]x[/red] \\x1b",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_line_breaks_stay_only_where_they_are_wanted() -> None:
    assert visible("a\nb") == "a\\nb"
    assert visible("a\nb\rc", keep="\n") == "a\nb\\rc"


def test_a_joiner_between_letters_is_seen() -> None:
    assert visible("pay\u200dpal") == "pay\\u200dpal"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_json_means_the_same_and_steers_nothing(value: object) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert steers(shown) <= {"\n"}


@pytest.mark.parametrize("piece", ["\x1b", "\u200d", "👩\u200d", "\ufe0f\u200d", "👩\ufe0f"])
def test_it_takes_time_in_step_with_the_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        started = time.process_time()
        for _ in range(5):
            visible(text)
        return time.process_time() - started

    seconds(1000)
    assert seconds(64_000) < 20 * seconds(16_000)
