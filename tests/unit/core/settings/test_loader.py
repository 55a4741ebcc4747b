"""Loading the configuration from the file, the environment and files of secrets."""

import errno
import os
import pwd
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from socialpub.core import commands
from socialpub.core.secrets.crypto import Secrets
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


def test_a_missing_file_is_an_error_whose_hint_is_init(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "USUAL_FILES", (Path("config.toml"), tmp_path / "etc.toml"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"no configuration file at config\.toml or .*etc\.toml") as raised:
        loader.load(None, {})
    assert "socialpub init" in str(raised.value.hint)
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        loader.load(None, {"SOCIALPUB_CONFIG": "gone.toml"})


def test_the_hint_gives_the_service_access_to_the_file(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    me = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(Path, "read_text", refuse)
    file = tmp_path / "config.toml"
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert "as the user of socialpub" in str(raised.value.hint)
    monkeypatch.setattr(commands, "manager", lambda: "systemctl")
    monkeypatch.setattr(commands, "USER", me)
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert raised.value.hint == f"Run `sudo chgrp {me} {tmp_path} {file}` and `sudo chmod g+rX {tmp_path} {file}`."
    monkeypatch.setattr(commands, "USER", "nobody")
    monkeypatch.setattr(sys, "argv", ["socialpub", "--config", str(file), "admin", "list-keys"])
    with pytest.raises(SettingsError) as raised:
        loader.load(file, {})
    assert raised.value.hint == "Run `sudo socialpub admin list-keys`."


def test_a_folder_broken_toml_and_strange_bytes_have_different_messages(tmp_path, mistakes):
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
    assert s.listen_addresses == [("127.0.0.1", 8000)]
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
    assert s.advice() == []


def test_all_files_are_in_the_data_folder(configured, tmp_path):
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
    assert configured('listen = "0.0.0.0:80"').listen_addresses == [("0.0.0.0", 80)]
    assert configured('listen = "[::1]:8000"').listen_addresses == [("::1", 8000)]
    assert configured('listen = "localhost:65535"').listen_ports == [65535]
    for wrong in (
        "8000",
        ":8000",
        "::1:8000",
        "[:::]:1",
        "host:0",
        "host:65536",
        "host:",
        "http://host:80",
        "",
        "a:1,",
    ):
        assert "HOST:PORT" in mistakes(f'listen = "{wrong}"')
    for wrong in ("[]", "5", "[5]", '["a:1", 5]', '[["a:1"]]'):
        assert "HOST:PORT" in mistakes(f"listen = {wrong}")


def test_listen_takes_a_list_in_the_file_and_commas_in_the_variable(configured):
    in_the_file = configured('listen = ["127.0.0.1:8000", "[::1]:8001"]')
    assert in_the_file.listen_addresses == [("127.0.0.1", 8000), ("::1", 8001)]
    assert configured(SOCIALPUB_LISTEN="127.0.0.1:8000,[::1]:8001").listen == in_the_file.listen


@pytest.mark.parametrize(
    ("listen", "mistake"),
    [
        ("127.0.0.1:80, 127.0.0.1:80", "127.0.0.1:80 is given twice"),
        ("[::1]:80, [0:0::1]:080", "[0:0::1]:080 is given twice"),
        ("Example.com:80, example.com:80", "example.com:80 is given twice"),
        ("127.0.0.1:80, 0.0.0.0:80", "0.0.0.0:80 also listens at 127.0.0.1:80"),
        ("[::]:80, 0.0.0.0:80", "[::]:80 also listens at 0.0.0.0:80"),
        ("localhost:80, [::]:80", "[::]:80 also listens at localhost:80"),
    ],
)
def test_addresses_that_cannot_both_be_listened_at_are_a_mistake(mistakes, configured, listen, mistake):
    assert f"{mistake}; remove one of the two" in mistakes(SOCIALPUB_LISTEN=listen)
    assert configured(SOCIALPUB_LISTEN=f"{listen[: listen.rindex(':')]}:81")


def test_settings_cannot_be_changed_afterwards(configured):
    s = configured()
    with pytest.raises(ValidationError):
        s.base_url = "http://other"
    with pytest.raises(ValidationError):
        s.providers.x.client_id = "other"


def test_a_give_up_after_below_the_longest_wait_of_a_network_is_reported(configured):
    (note,) = configured('[publishing]\ngive_up_after = "1h"').advice()
    assert "publishing.give_up_after is 1h" in note
    assert "24h" in note


def test_an_incomplete_pair_of_credentials_is_reported(configured):
    assert "client_id is empty" in configured('[providers.x]\nclient_secret = "s"').half_credentials()[0]
    assert "client_secret is empty" in configured('[providers.tiktok]\nclient_key = "k"').half_credentials()[0]
    assert configured('[providers.x]\nclient_id = "a public app"').half_credentials() == []


# --- environment -----------------------------------------------------------------------------------------------------


def test_every_key_can_be_set_in_the_environment_and_wins_over_the_file(configured):
    s = configured(
        'base_url = "http://file"\n[publishing]\nmin_gap = "2s"',
        SOCIALPUB_BASE_URL="http://variable",
        SOCIALPUB_PUBLISHING__MIN_GAP="3s",
        SOCIALPUB_PROVIDERS__X__CLIENT_ID="abc",
        SOCIALPUB_PROVIDERS__TIKTOK__PKCE="false",
        SOCIALPUB_PROVIDERS__TIKTOK__UPLOAD_HOSTS="a.example, b.example",
        SOCIALPUB_PROVIDERS__TIKTOK__SCOPES="user.info.basic,video.upload",
        SOCIALPUB_RATE_LIMIT__REQUESTS_PER_MINUTE="5",
        SOCIALPUB_MEDIA__KEEP_AFTER_SETTLED="90d",
        SOCIALPUB_UPLOADS__MAX_VIDEO_BYTES="1000",
        UNRELATED="x",
    )
    assert s.base_url == "http://variable"
    assert s.publishing.min_gap == timedelta(seconds=3)
    assert s.providers.x.client_id == "abc"
    assert s.providers.tiktok.pkce is False
    assert s.providers.tiktok.upload_hosts == ("a.example", "b.example")
    assert s.providers.tiktok.scopes == ("user.info.basic", "video.upload")
    assert s.rate_limit.requests_per_minute == 5
    assert s.media.keep_after_settled == timedelta(days=90)
    assert s.uploads.max_video_bytes == 1000


def test_each_key_has_exactly_one_variable():
    names = [loader.variable_name(key) for key in loader.KEYS]
    assert len(set(names)) == len(names)
    assert "SOCIALPUB_BASE_URL" in names
    assert "SOCIALPUB_PROVIDERS__TIKTOK__CLIENT_KEY" in names
    assert commands.CONFIG_VARIABLE not in names


def test_an_unknown_variable_is_a_mistake_with_the_nearest_name(mistakes):
    message = mistakes(SOCIALPUB_PUBLISHING_MIN_GAP="3", SOCIALPUB_base_url="x", SOCIALPUB_ZZZZZZZZZZ="hush")
    assert "SOCIALPUB_PUBLISHING_MIN_GAP is not known; did you mean SOCIALPUB_PUBLISHING__MIN_GAP?" in message
    assert "SOCIALPUB_base_url is not known; did you mean SOCIALPUB_BASE_URL?" in message
    assert "SOCIALPUB_ZZZZZZZZZZ is not known; remove it" in message
    assert "hush" not in message


@pytest.mark.parametrize("service", ["SOCIALPUB", "SOCIALPUB_WEB", "SOCIALPUB_2"])
def test_the_variables_of_a_kubernetes_service_are_no_settings(configured, service):
    own = {
        f"{service}_SERVICE_HOST": "10.0.0.11",
        f"{service}_SERVICE_PORT": "8000",
        f"{service}_SERVICE_PORT_HTTP_ALT": "8000",
        f"{service}_PORT": "tcp://10.0.0.11:8000",
        f"{service}_PORT_8000_TCP": "tcp://10.0.0.11:8000",
        f"{service}_PORT_8000_TCP_PROTO": "tcp",
        f"{service}_PORT_8000_TCP_PORT": "8000",
        f"{service}_PORT_8000_TCP_ADDR": "10.0.0.11",
    }
    assert configured(**own) == configured()


def test_a_wrong_value_from_the_environment_names_its_variable(mistakes):
    message = mistakes(SOCIALPUB_RATE_LIMIT__REQUESTS_PER_MINUTE="many")
    assert 'rate_limit.requests_per_minute (from SOCIALPUB_RATE_LIMIT__REQUESTS_PER_MINUTE) = "many"' in message


def test_a_secret_can_be_in_a_file_next_to_the_configuration(configured, tmp_path):
    (tmp_path / "x.secret").write_text("from the file\n")
    (tmp_path / "metrics.token").write_text("scrape-me\n")
    s = configured(
        '[providers.x]\nclient_id = "a"\nclient_secret_file = "x.secret"',
        SOCIALPUB_METRICS__TOKEN_FILE=str(tmp_path / "metrics.token"),
    )
    assert s.providers.x.client_secret.get_secret_value() == "from the file"
    assert s.metrics.token.get_secret_value() == "scrape-me"


def test_a_systemd_credential_comes_before_the_file_of_the_same_name(configured, tmp_path):
    (tmp_path / "x.secret").write_text("beside")
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "x.secret").write_text("credential")
    text = '[providers.x]\nclient_secret_file = "x.secret"'
    with_credential = configured(text, CREDENTIALS_DIRECTORY=str(tmp_path / "credentials"))
    assert with_credential.providers.x.client_secret.get_secret_value() == "credential"
    without = configured(text, CREDENTIALS_DIRECTORY=str(tmp_path / "none"))
    assert without.providers.x.client_secret.get_secret_value() == "beside"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone", "does not exist"), ("empty", "is empty"), ("binary", "not UTF-8"), ("folder", "cannot be read")],
)
def test_a_secret_file_that_cannot_be_used_is_reported_with_its_path(mistakes, tmp_path, name, reason):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    message = mistakes(f'[providers.tiktok]\nclient_secret_file = "{name}"')
    assert reason in message
    assert "providers.tiktok.client_secret_file" in message
    assert str(tmp_path / name) in message


@pytest.mark.parametrize(
    ("key", "message"),
    [("client_secret_file = 5", "must be the name of a file, not a number"), ("api_url_file = ''", "")],
)
def test_only_a_secret_has_a_file_and_its_name_is_text(mistakes, key, message):
    assert f"providers.x.{key.partition(' ')[0]} {message}" in mistakes(f"[providers.x]\n{key}")


def test_a_secret_given_twice_is_a_mistake(mistakes, tmp_path):
    (tmp_path / "s").write_text("one")
    message = mistakes('[providers.x]\nclient_secret = "two"\nclient_secret_file = "s"')
    assert "both set" in message
    assert "two" not in message


# --- fingerprints ----------------------------------------------------------------------------------------------------


SIGN = Secrets(b"k" * 32).sign


def read(tmp_path, text, environ=None):
    file = tmp_path / "config.toml"
    file.write_text(text)
    return loader.load(file, environ or {}).fingerprints(SIGN)


def test_changed_keys_are_listed(tmp_path):
    before = read(tmp_path, '[providers.x]\nclient_id = "a"\nclient_secret = "hush"\n')
    now = read(tmp_path, 'listen = "[::1]:80"\n[providers.x]\nclient_id = "a"\nclient_secret = "other"\n')
    assert loader.changed_keys(before, now) == ["listen", "providers.x.client_secret"]
    assert loader.changed_keys(before, before) == []
    assert "hush" not in str(before)


def test_the_source_of_a_value_does_not_change_its_fingerprint(tmp_path):
    (tmp_path / "x.secret").write_text("hush\n")
    in_the_file = read(tmp_path, 'base_url = "http://a"\n[providers.x]\nclient_secret = "hush"\n')
    elsewhere = read(tmp_path, '[providers.x]\nclient_secret_file = "x.secret"\n', {"SOCIALPUB_BASE_URL": "http://a"})
    assert loader.changed_keys(in_the_file, elsewhere) == []


def test_equal_values_of_two_keys_or_two_installations_have_different_fingerprints(tmp_path):
    found = read(tmp_path, '[providers.x]\nclient_id = "a"\n[providers.pinterest]\nclient_id = "a"\n')
    assert found["providers.x.client_id"] != found["providers.pinterest.client_id"]
    settings = loader.load(tmp_path / "config.toml", {})
    assert settings.fingerprints(Secrets(b"l" * 32).sign)["providers.x.client_id"] != found["providers.x.client_id"]


def test_a_key_that_only_one_version_knows_is_not_a_change(tmp_path):
    now = read(tmp_path, "")
    assert loader.changed_keys({"a.key.of.yesterday": "x"}, now) == []
