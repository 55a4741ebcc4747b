"""Errors of `secret.key`, and the commands that fix them."""

import os
from pathlib import Path

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret.key"
    file.write_bytes(crypto.new_key())
    return file


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The kernel denies reading, as for every user except root."""

    def read_text(path: Path, *_: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", read_text)
    return monkeypatch


def test_the_hint_gives_a_key_of_root_to_the_user(key_file, denied):
    denied.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(OperatorError) as refused:
        crypto.load(key_file)
    assert f"{key_file} is owned by " in refused.value.message
    assert refused.value.message.endswith("and 54321 cannot read it.")
    assert refused.value.hint == f"Run `sudo chown 54321: {key_file}`."


def test_an_unreadable_key_of_this_user_has_a_wrong_mode(key_file, denied):
    with pytest.raises(OperatorError) as refused:
        crypto.load(key_file)
    assert refused.value.hint == f"Run `chmod 600 {key_file}`."


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff\xff", "is not URL-safe base64"), (b"c2hvcnQ=", "is too short: it must contain 32")],
)
def test_the_error_says_why_a_file_is_not_a_key(key_file, content, why):
    key_file.write_bytes(content)
    with pytest.raises(OperatorError, match=why):
        crypto.load(key_file)


def test_the_error_about_a_missing_key_names_its_possible_places(key_file):
    key_file.unlink()
    with pytest.raises(OperatorError) as refused:
        crypto.load(key_file)
    assert "init --new-secret" in str(refused.value.hint)
