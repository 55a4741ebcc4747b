"""Messages about a wrong configuration name key and line, and contain no secret."""

import tomllib

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader


def test_all_mistakes_are_listed_at_once_each_with_key_value_and_remedy(mistakes):
    message = mistakes(
        """
        listen = "8000"
        give_up_after = "3h"
        [publishing]
        min_gap = 0
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
    assert "publishing.min_gap = 0" in message
    assert '(default "0s")' in message
    assert "publishing.give_up_afte is not known; did you mean publishing.give_up_after?" in message
    assert "give_up_after is not known; did you mean publishing.give_up_after?" in message
    assert "loging is not known; did you mean logging?" in message
    assert "providers.mastodon is not known; remove it" in message
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
        '[providers.x]\nclient_secret = "12345678"\n[publishing]\nmin_gap = 0',
    ],
)
def test_the_value_of_a_secret_is_never_shown(mistakes, text):
    assert "12345678" not in mistakes(text)


# --- files that are no TOML ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            '[providers.x]\nclient_id = "hush"\n\n[ providers.x ]  # again\nclient_secret = "hush"\n',
            "has the section [providers.x] twice, in line 1 and line 4.",
            "into one section",
        ),
        (
            'providers.x.client_id = "hush"\n[providers.x]\nclient_secret = "hush"\n',
            "has the section [providers.x] twice, the second time in line 2.",
            "into one section",
        ),
        (
            '[providers.x]\nclient_secret = "hush"\nclient_secret = "hush"\n',
            "sets client_secret twice, the second time in line 3.",
            "Remove one of the two lines",
        ),
        ("base_url = hush\n", "is not valid TOML in line 1: Invalid value.", "in quotes"),
        ('base_url = "hush', "is not valid TOML in line 1: ", "in quotes"),
    ],
)
def test_toml_errors_name_the_mistake_and_its_line(tmp_path, text, message, remedy):
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(OperatorError) as raised:
        loader.load(file, {})
    assert raised.value.message.startswith(f"{file} {message}")
    assert remedy in raised.value.hint
    assert "hush" not in f"{raised.value.message} {raised.value.hint}"
