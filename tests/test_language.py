"""The words and sentences of the project follow its language rules (`tests/language.py`)."""

from pathlib import Path

import pytest

from tests import language

pytestmark = pytest.mark.source


@pytest.mark.parametrize("path", [*language.READ_BY_USERS, *language.READ_BY_DEVELOPERS])
def test_words_and_sentences_are_plain(path: str) -> None:
    assert list(language.findings([path])) == []


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("a.py", 'def f():\n    """Whoever waits is told."""\n', ["“Whoever”", "“told”"]),
        ("a.py", "# It stands here, too.\n", ["“stands here”", "“, too”"]),
        ("a.py", "def test_nobody_is_told():\n    pass\n", ["“nobody”", "“told”"]),
        ("a.py", f'print("Say{" word" * 25}.")\n', ["26 words"]),
        ("a.py", f'print(f"Say{" word" * 24} {{1}}.")\n', ["26 words"]),
        ("a.py", f'def f():\n    """Return {"word " * 30}."""\n', []),
        ("a.md", f"# Title\n\nA first sentence. Say{' word' * 25}.\n", ["26 words"]),
        ("a.md", "```sh\necho anew\n```\n`anew` is code.\n", []),
        ("a.html", "<p>Sent <b>anew</b>.</p><script>whoever()</script>", ["“anew”"]),
        ("a.toml", "# Patience is a\n# virtue.\nkey = 1\n", ["“Patience”"]),
    ],
)
def test_what_breaks_a_rule_is_named_with_a_better_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, found: list[str]
) -> None:
    monkeypatch.setattr(language, "ROOT", tmp_path)
    (tmp_path / file).write_text(content)
    shown = list(language.findings([file]))
    assert len(shown) == len(found)
    assert all(start in one for start, one in zip(found, shown, strict=True))
