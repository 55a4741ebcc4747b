"""The URL and the key of the commands, and responses that are not the appliance's."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from socialpub.cli.client.connection import NotAccepted, load_target, open_client
from socialpub.core.settings import loader
from tests.integration.shell.conftest import Shell

KEY = "spk_shown_never"


@pytest.fixture
def file(offline_shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place of the URL and the key."""
    monkeypatch.delenv("SOCIALPUB_URL")
    monkeypatch.delenv("SOCIALPUB_KEY")
    file = tmp_path / ".config/socialpub/client.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'url = "http://appliance.test/social/"\nkey = "{KEY}"\n')
    file.chmod(0o600)
    return file


def test_the_url_and_the_key_come_from_the_file_unless_a_variable_is_set(file, monkeypatch):
    assert load_target() == ("http://appliance.test/social", KEY)
    assert KEY not in repr(load_target())
    monkeypatch.setenv("SOCIALPUB_KEY", "spk_other_one")
    assert load_target() == ("http://appliance.test/social", "spk_other_one")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_other_users_may_read_is_refused(file, offline_shell, mode):
    file.chmod(mode)
    result = offline_shell("profiles")
    assert result.exit_code == 2 and f"Run: chmod 600 {file}" in result.stderr and KEY not in result.output


def test_a_file_of_another_user_is_refused(file, offline_shell, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    result = offline_shell("profiles")
    assert result.exit_code == 2 and "belongs to another user" in result.stderr and KEY not in result.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"key = {KEY}", "is not TOML"),
        (f'key = "{KEY}"', "Set SOCIALPUB_URL, or write url and key to"),
        ('url = "http://appliance.test"', "Set SOCIALPUB_KEY, or write url and key to"),
        (f'token = "{KEY}"', "may contain only two lines"),
        (f'url = 5\nkey = "{KEY}"', "may contain only two lines"),
        (f'url = "ftp://appliance.test"\nkey = "{KEY}"', "must be its base_url"),
        (f'url = "http://me:{KEY}@appliance.test"\nkey = "{KEY}"', "must be its base_url"),
        (f'url = "http://appliance.test:port"\nkey = "{KEY}"', "must be its base_url"),
        (f'url = "http://appliance.test"\nkey = "{KEY}\\n{KEY}"', "contains characters that no key has"),
    ],
)
def test_a_wrong_file_is_wrong_usage_and_the_message_has_no_key(file, offline_shell, content, message):
    file.write_text(content)
    result = offline_shell("profiles")
    assert result.exit_code == 2 and message in result.stderr and KEY not in result.output


def test_the_variables_are_not_mistakes_of_the_configuration(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    assert loader.load(file, {"SOCIALPUB_URL": "http://appliance.test", "SOCIALPUB_KEY": KEY}).config_file == file


def answer(status: int, **more: object) -> Callable[[object], httpx2.Response]:
    return lambda _: httpx2.Response(status, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "message", "tries"),
    [
        (answer(301, headers={"location": "https://appliance.test/"}), "redirects to https://appliance.test.", 1),
        (answer(200, text="<html>"), "is not a socialpub appliance", 1),
        (answer(200, json=[]), "is not a socialpub appliance", 1),
        (answer(404, json={"detail": ["a"]}), "answered 404, and not in the form", 1),
        (answer(502, text="<html>"), "answered 502, and not in the form", 5),
    ],
)
def test_a_response_of_something_else_is_refused(shell, wire, response, message, tries):
    wire.faults["GET /profiles"] = [response] * 5
    result = shell("profiles")
    assert result.exit_code == 4 and message in result.stderr and len(wire.requests) == tries


def test_a_wrong_certificate_is_reported_without_a_repeat(shell, wire, pauses):
    def distrust(_: object) -> httpx2.Response:
        raise httpx2.ConnectError("[SSL]") from ssl.SSLCertVerificationError()

    wire.faults["GET /profiles"] = [distrust]
    result = shell("profiles")
    assert result.exit_code == 4 and "its certificate is not valid" in result.stderr and pauses == []


def test_a_refused_key_is_not_shown(shell, monkeypatch):
    monkeypatch.setenv("SOCIALPUB_KEY", KEY)
    result = shell("profiles")
    assert result.exit_code == 4 and "API key" in result.stderr and KEY not in result.output


def test_a_proxy_variable_that_cannot_be_used_is_named(file, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hush-word@proxy.test:1080")
    with pytest.raises(NotAccepted) as refused, open_client():
        pass
    assert "ALL_PROXY" in refused.value.message and "hush" not in str(refused.value.__dict__)
