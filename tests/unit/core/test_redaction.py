"""Redacted text contains no secret and no control character."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.core.secrets.redaction import is_secret, is_secret_name, redact, visible, visible_json
from tests.samples.secrets import SECRETS

# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_left_in_a_text(text):
    assert "hush" not in redact(text)
    assert "****" in redact(text)


def test_ordinary_words_stay_readable():
    for text in (
        "answered 201 in 3 ms",
        "is it up? look at https://x.com/acme/status/190",
        "the bearer of bad news",
        "post_id=0190 code=187 status: 403",
        "token endpoint answered 500",
        "code: 403",
        "error code=89 state=running",
        "TikTok refused: unaudited (code: unaudited_client_can_only_post_to_private_accounts)",
        '{"code": "spam_risk_too_many_posts", "state": "processing_download"}',
        "code=OPERATIONAL_DISCONNECT code: UsageCapExceeded state=publish.inbox.delivered",
        "provider_code=Zm9vYmFy0123456789abcdef",
        "country code: DE, zip code=10115-1234567",
        "the state: of the art; a cookie is eaten",
    ):
        assert redact(text) == text
    assert not is_secret_name("post_id")
    assert not is_secret_name("token_expires_at")


def test_a_field_is_hidden_by_its_name_or_by_name_and_value():
    assert is_secret("refresh_token", 1)
    assert is_secret("code_verifier", "x")
    assert is_secret("set-cookie", "x")
    assert is_secret("code", "Zm9vYmFy0123456789abcdef")
    assert is_secret("state", "Zm9vYmFy0123456789abcdef")
    for value in ("89", "spam_risk_too_many_posts", 403, None):
        assert not is_secret("code", value)
    assert not is_secret("request_id", "Zm9vYmFy0123456789abcdef")


# --- characters ------------------------------------------------------------------------------------------------------


STEERS = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def steers(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in STEERS}


def test_every_control_character_is_escaped():
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
def test_ordinary_text_does_not_change(text):
    assert visible(text) == text


def test_line_breaks_stay_only_if_they_are_kept():
    assert visible("a\nb") == "a\\nb"
    assert visible("a\nb\rc", keep="\n") == "a\nb\\rc"


def test_a_joiner_between_letters_is_escaped():
    assert visible("pay\u200dpal") == "pay\\u200dpal"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_json_keeps_its_meaning_without_control_characters(value):
    shown = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert steers(shown) <= {"\n"}
