"""Everything that is wrong with a configuration is listed at once, and no secret with it."""

import pytest


def test_all_mistakes_are_listed_at_once_each_with_key_value_and_remedy(mistakes):
    message = mistakes(
        """
        listen = "8000"
        give_up_after = "3h"
        [publishing]
        workers = 0
        give_up_afte = "3h"
        [loging]
        level = "debug"
        [providers]
        mastodon = {}
        [logging]
        format = "xml"
        """,
        SOCIALPUB_RATE_LIMIT__FAILED_KEYS_PER_MINUTE="-1",
    )
    assert "8 mistakes" in message
    assert message.count("\n- ") == 8
    assert 'listen = "8000"' in message
    assert "publishing.workers = 0" in message
    assert "from 1 to 64 (default 8)" in message
    assert "publishing.give_up_afte is not known; did you mean publishing.give_up_after?" in message
    assert "give_up_after is not known; did you mean publishing.give_up_after?" in message
    assert "loging is not known; did you mean logging?" in message
    assert "providers.mastodon is not known; leave it out" in message
    assert '"human" or "json"' in message
    assert "SOCIALPUB_RATE_LIMIT__FAILED_KEYS_PER_MINUTE" in message


def test_a_value_where_a_section_belongs_says_how_a_section_is_written(mistakes):
    message = mistakes('providers = "hush"', SOCIALPUB_PROVIDERS__X__CLIENT_ID="abc")
    assert "providers must be a section: write [providers]" in message
    assert "hush" not in message


@pytest.mark.parametrize(
    "text",
    [
        "[providers.x]\nclient_secret = 12345678",
        '[providers.x]\nclient_secert = "12345678"',
        '[providers]\nx = "12345678"',
        '[metrics]\ntoken = ["12345678"]',
        'base_url = "https://me:12345678@example.com"',
        '[providers.x]\napi_url = "https://example.com/?key=12345678"',
        '[providers.x]\nclient_secret = "12345678"\n[publishing]\nworkers = 0',
    ],
)
def test_the_value_of_a_secret_is_never_shown(mistakes, text):
    assert "12345678" not in mistakes(text)
