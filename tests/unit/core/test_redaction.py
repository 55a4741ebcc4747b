"""Secrets are hidden, ordinary words are not, and it takes no longer than the text is long."""

import time

import pytest

from socialpub.core.secrets.redaction import is_secret, is_secret_name, redact
from tests.samples.secrets import SECRETS


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


@pytest.mark.parametrize(
    "piece",
    [
        "?",
        "a?a",
        "http://",
        "access_token: ",
        'token:"\\',
        "bearer ",
        "://a",
        'x"=\\"',
        "cookie: ",
        'cookie:"\\',
        "code=",
        "code=aA",
        "state=a_",
        "code: a1B2c3D4e5F6g7H8",
    ],
)
def test_redaction_takes_time_in_step_with_the_length(piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 2
