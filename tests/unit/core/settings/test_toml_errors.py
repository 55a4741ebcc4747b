"""A file that is no TOML is told by its line, in the words of somebody who wrote it, and never by its values."""

import tomllib

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            '[providers.x]\nclient_id = "hush"\n\n[ providers.x ]  # again\nclient_secret = "hush"\n',
            "has the section [providers.x] twice: in line 4, first in line 1.",
            "below one of them",
        ),
        (
            'providers.x.client_id = "hush"\n[providers.x]\nclient_secret = "hush"\n',
            "has the section [providers.x] twice: in line 2.",
            "below one of them",
        ),
        (
            '[providers.x]\nclient_secret = "hush"\nclient_secret = "hush"\n',
            "sets client_secret twice: again in line 3.",
            "Keep one of the two lines",
        ),
        ("base_url = hush\n", "is not valid TOML in line 1: Invalid value.", "in quotes"),
        ('base_url = "hush', "is not valid TOML in line 1: ", "in quotes"),
    ],
)
def test_what_is_wrong_and_where(tmp_path, text, message, remedy):
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(OperatorError) as raised:
        loader.load(file, {})
    assert raised.value.message.startswith(f"{file} {message}")
    assert remedy in raised.value.hint
    assert "hush" not in f"{raised.value.message} {raised.value.hint}"
