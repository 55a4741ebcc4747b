"""The configuration as a whole: found, read, complete, and frozen."""

import errno
import os
import pwd
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from socialpub.core import commands
from socialpub.core.command_forms import ServiceCommands
from socialpub.core.settings import loader
from socialpub.core.settings.loader import SettingsError


def test_the_named_file_comes_before_the_variable_and_that_before_the_usual_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("named", "variable", "config"):
        (tmp_path / f"{name}.toml").write_text(f'base_url = "http://{name}"')
    environ = {"SOCIALPUB_CONFIG": str(tmp_path / "variable.toml")}
    assert loader.load(tmp_path / "named.toml", environ).base_url == "http://named"
    assert loader.load(None, environ).base_url == "http://variable"
    assert loader.load(None, {}).base_url == "http://config"
    assert loader.load(None, {"SOCIALPUB_CONFIG": ""}).config_file == tmp_path / "config.toml"


def test_a_missing_file_is_an_error_that_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "USUAL_FILES", (Path("config.toml"), tmp_path / "etc.toml"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"no configuration file at config\.toml or .*etc\.toml") as raised:
        loader.load(None, {})
    assert "socialpub init" in str(raised.value.hint)
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        loader.load(None, {"SOCIALPUB_CONFIG": "gone.toml"})


def test_a_file_that_the_service_may_not_read_is_given_to_it(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    me = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(Path, "read_text", refuse)
    file = tmp_path / "config.toml"
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert "as the user that socialpub runs as" in str(raised.value.hint)
    monkeypatch.setattr(commands, "_here", ServiceCommands(user=me))
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert raised.value.hint == f"Run `sudo chgrp {me} {tmp_path} {file}` and `sudo chmod g+rX {tmp_path} {file}`."
    monkeypatch.setattr(commands, "_here", ServiceCommands(user="nobody"))
    monkeypatch.setattr(sys, "argv", ["socialpub", "--config", str(file), "admin", "list-keys"])
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert raised.value.hint == "Run `sudo socialpub admin list-keys`."


def test_a_folder_broken_toml_and_strange_bytes_each_have_a_message_of_their_own(tmp_path, mistakes):
    with pytest.raises(SettingsError, match="cannot be read"):
        loader.load(tmp_path, {})
    assert "not valid TOML" in mistakes("base_url = http://x")
    assert "line 1" in mistakes("base_url = http://x")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(SettingsError, match="not UTF-8"):
        loader.load(tmp_path / "latin.toml", {})


def test_an_empty_file_gives_the_defaults_of_the_documentation(configured, tmp_path):
    s = configured("")
    assert s.base_url == "http://127.0.0.1:8000"
    assert (s.listen_host, s.listen_port) == ("127.0.0.1", 8000)
    assert s.providers.x.api_url == "https://api.x.com"
    assert s.providers.x.authorize_url == "https://x.com/i/oauth2/authorize"
    assert s.providers.tiktok.api_url == "https://open.tiktokapis.com"
    assert s.providers.tiktok.authorize_url == "https://www.tiktok.com/v2/auth/authorize/"
    assert s.providers.tiktok.pkce is True
    assert s.providers.pinterest.api_url == "https://api.pinterest.com/v5"
    assert s.providers.pinterest.authorize_url == "https://www.pinterest.com/oauth/"
    assert s.publishing.max_lateness == timedelta(hours=24)
    assert s.publishing.give_up_after == timedelta(hours=48)
    assert s.uploads.max_image_bytes == 32 * 1024 * 1024
    assert s.uploads.max_video_bytes == 157286400
    assert (s.rate_limit.requests_per_minute, s.rate_limit.failed_keys_per_minute) == (600, 30)
    assert s.media.keep_after_settled is None
    assert s.health.disk_floor_bytes == 500_000_000
    assert s.notes() == []


def test_everything_lies_in_the_data_folder_beside_the_file(configured, tmp_path):
    s = configured('data_dir = "data"')
    assert s.data_dir == tmp_path / "data"
    assert s.secret_key_file == tmp_path / "data" / "secret.key"
    assert s.database_file == tmp_path / "data" / "socialpub.db"
    assert s.queue_file == tmp_path / "data" / "queue.db"
    assert s.media_dir == tmp_path / "data" / "media"
    assert s.run_dir == tmp_path / "data" / "run"
    assert configured(SOCIALPUB_DATA_DIR="elsewhere").data_dir == tmp_path / "elsewhere"
    assert configured('data_dir = "/srv/social"').data_dir == Path("/srv/social")


def test_a_relative_config_file_still_gives_an_absolute_data_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text("")
    assert loader.load(Path("config.toml"), {}).data_dir == tmp_path / "data"


@pytest.mark.parametrize(
    ("written", "base_url"),
    [
        ("https://example.com/", "https://example.com"),
        ("https://example.com/social/", "https://example.com/social"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_base_url_may_have_a_path_and_loses_its_last_slash(configured, written, base_url):
    assert configured(f'base_url = "{written}"').base_url == base_url


def test_listen_takes_names_addresses_and_ipv6_in_brackets(configured, mistakes):
    assert configured('listen = "0.0.0.0:80"').listen_host == "0.0.0.0"
    assert configured('listen = "[::1]:8000"').listen_host == "::1"
    assert configured('listen = "localhost:65535"').listen_port == 65535
    for wrong in ("8000", ":8000", "::1:8000", "[:::]:1", "host:0", "host:65536", "host:", "http://host:80"):
        assert "HOST:PORT" in mistakes(f'listen = "{wrong}"')


def test_settings_cannot_be_changed_afterwards(configured):
    s = configured()
    with pytest.raises(ValidationError):
        s.base_url = "http://other"
    with pytest.raises(ValidationError):
        s.providers.x.client_id = "other"


def test_a_patience_shorter_than_what_networks_ask_for_is_allowed_but_noted(configured):
    (note,) = configured('[publishing]\ngive_up_after = "1h"').notes()
    assert "publishing.give_up_after is 1h" in note
    assert "24h" in note


def test_half_of_the_credentials_is_noted(configured):
    assert "client_id is empty" in configured('[providers.x]\nclient_secret = "s"').half_credentials()[0]
    assert "client_secret is empty" in configured('[providers.tiktok]\nclient_key = "k"').half_credentials()[0]
    assert configured('[providers.x]\nclient_id = "a public app"').half_credentials() == []
