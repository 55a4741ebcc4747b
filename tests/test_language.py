"""The words and sentences of the project follow its language rules (`tests/language.py`)."""

import pytest

from tests import language

pytestmark = pytest.mark.source


@pytest.mark.parametrize("path", [*language.READ_BY_USERS, *language.READ_BY_DEVELOPERS])
def test_words_and_sentences_are_plain(path: str) -> None:
    assert list(language.findings([path])) == []
