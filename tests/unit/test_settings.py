"""A configuration is right altogether, or told everything that is wrong with it."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from socialpub.core.settings import env, loader
from socialpub.core.settings.loader import Settings, SettingsError


@pytest.fixture
def configured(tmp_path):
    """Load settings from this text and these variables."""

    def load(text: str = "", **environ: str) -> Settings:
        file = tmp_path / "config.toml"
        file.write_text(text)
        return loader.load(file, environ)

    return load


@pytest.fixture
def mistakes(configured):
    """The message that this text and these variables are answered with."""

    def told(text: str = "", **environ: str) -> str:
        with pytest.raises(SettingsError) as raised:
            configured(text, **environ)
        assert raised.value.hint
        return raised.value.message

    return told


# --- finding the file ------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(loader, "USUAL_FILES", (Path("config.toml"), tmp_path / "etc.toml"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"no configuration file at config\.toml or .*etc\.toml") as raised:
        loader.load(None, {})
    assert "socialpub init" in str(raised.value.hint)
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        loader.load(None, {"SOCIALPUB_CONFIG": "gone.toml"})


def test_a_folder_broken_toml_and_strange_bytes_are_each_told_as_what_they_are(tmp_path, mistakes):
    with pytest.raises(SettingsError, match="cannot be read"):
        loader.load(tmp_path, {})
    assert "not valid TOML" in mistakes("base_url = http://x")
    assert "line 1" in mistakes("base_url = http://x")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(SettingsError, match="not UTF-8"):
        loader.load(tmp_path / "latin.toml", {})


# --- values ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://x", "http://", "https:///p", "http://x?q", "http://x#f", "http://u@x", "http://x:70000",
     "http://x y", "http://x\\n", "http://ü.de", "http://x:0"],
)  # fmt: skip
def test_an_address_that_nobody_can_reach_is_refused(mistakes, url):
    assert "base_url" in mistakes(f'base_url = "{url}"')


def test_listen_takes_names_addresses_and_ipv6_in_brackets(configured, mistakes):
    assert configured('listen = "0.0.0.0:80"').listen_host == "0.0.0.0"
    assert configured('listen = "[::1]:8000"').listen_host == "::1"
    assert configured('listen = "localhost:65535"').listen_port == 65535
    for wrong in ("8000", ":8000", "::1:8000", "[:::]:1", "host:0", "host:65536", "host:", "http://host:80"):
        assert "HOST:PORT" in mistakes(f'listen = "{wrong}"')


def test_sizes_are_numbers_or_text_with_a_unit_and_go_downwards_only(configured, mistakes):
    s = configured('[uploads]\nmax_image_bytes = "16MiB"\nmax_video_bytes = "100MB"\n[health]\ndisk_floor_bytes = 0')
    assert s.uploads.max_image_bytes == 16 * 1024 * 1024
    assert s.uploads.max_video_bytes == 100_000_000
    assert s.health.disk_floor_bytes == 0
    assert '"32MiB"' in mistakes('[uploads]\nmax_image_bytes = "33MiB"')
    assert "157286400" in mistakes("[uploads]\nmax_video_bytes = 157286401")
    assert "max_image_pixels" in mistakes("[uploads]\nmax_image_pixels = 100000001")
    for wrong in ("true", "-5", '"x"', "1.5", "0"):
        assert "uploads.max_image_bytes" in mistakes(f"[uploads]\nmax_image_bytes = {wrong}")


def test_for_ever_can_be_said_in_words(configured):
    assert configured('[media]\nkeep_after_settled = "forever"').media.keep_after_settled is None
    assert configured('[media]\nkeep_after_settled = "90d"').media.keep_after_settled == timedelta(days=90)


def test_nothing_is_coerced_silently(mistakes):
    assert "publishing.workers" in mistakes('[publishing]\nworkers = "8"')
    assert "providers.tiktok.pkce" in mistakes("[providers.tiktok]\npkce = 1")
    assert "providers.x.client_id" in mistakes("[providers.x]\nclient_id = 5")
    assert "publishing.give_up_after" in mistakes("[publishing]\ngive_up_after = 48")


def test_settings_cannot_be_changed_afterwards(configured):
    s = configured()
    with pytest.raises(ValidationError):
        s.base_url = "http://other"
    with pytest.raises(ValidationError):
        s.providers.x.client_id = "other"


# --- values that depend on each other --------------------------------------------------------------------------------


def test_an_upload_url_that_outlives_its_reservation_is_refused_even_when_only_one_of_them_was_written(mistakes):
    assert "uploads.reservation_lifetime" in mistakes('[uploads]\nurl_lifetime = "25h"')
    assert "uploads.reservation_lifetime" in mistakes('[uploads]\nreservation_lifetime = "30m"')


def test_all_frames_together_may_not_have_fewer_pixels_than_one(mistakes):
    assert "lower both" in mistakes("[uploads]\nmax_image_total_pixels = 1000")


def test_a_patience_shorter_than_what_networks_ask_for_is_allowed_but_noted(configured):
    (note,) = configured('[publishing]\ngive_up_after = "1h"').notes()
    assert "publishing.give_up_after is 1h" in note
    assert "24h" in note


def test_half_of_the_credentials_is_noted(configured):
    assert "client_id is empty" in configured('[providers.x]\nclient_secret = "s"').notes()[0]
    assert "client_secret is empty" in configured('[providers.tiktok]\nclient_key = "k"').notes()[0]
    assert configured('[providers.x]\nclient_id = "a public app"').notes() == []


# --- the environment -------------------------------------------------------------------------------------------------


def test_every_key_can_be_set_in_the_environment_and_wins_over_the_file(configured):
    s = configured(
        'base_url = "http://file"\n[publishing]\nworkers = 2',
        SOCIALPUB_BASE_URL="http://variable",
        SOCIALPUB_PUBLISHING__WORKERS="3",
        SOCIALPUB_PROVIDERS__X__CLIENT_ID="abc",
        SOCIALPUB_PROVIDERS__TIKTOK__PKCE="false",
        SOCIALPUB_PROVIDERS__TIKTOK__UPLOAD_HOSTS="a.example, b.example",
        SOCIALPUB_RATE_LIMIT__REQUESTS_PER_MINUTE="5",
        SOCIALPUB_MEDIA__KEEP_AFTER_SETTLED="90d",
        SOCIALPUB_UPLOADS__MAX_VIDEO_BYTES="1000",
        UNRELATED="x",
    )
    assert s.base_url == "http://variable"
    assert s.publishing.workers == 3
    assert s.providers.x.client_id == "abc"
    assert s.providers.tiktok.pkce is False
    assert s.providers.tiktok.upload_hosts == ("a.example", "b.example")
    assert s.rate_limit.requests_per_minute == 5
    assert s.media.keep_after_settled == timedelta(days=90)
    assert s.uploads.max_video_bytes == 1000


def test_each_key_has_exactly_one_variable():
    names = [env.variable(key) for key in loader.KEYS]
    assert len(set(names)) == len(names)
    assert "SOCIALPUB_BASE_URL" in names
    assert "SOCIALPUB_PROVIDERS__TIKTOK__CLIENT_KEY" in names
    assert env.FILE_VARIABLE not in names


def test_an_unknown_variable_is_a_mistake_with_the_nearest_name(mistakes):
    told = mistakes(SOCIALPUB_PUBLISHING_WORKERS="3", SOCIALPUB_base_url="x", SOCIALPUB_ZZZZZZZZZZ="hush")
    assert "SOCIALPUB_PUBLISHING_WORKERS is not known; did you mean SOCIALPUB_PUBLISHING__WORKERS?" in told
    assert "SOCIALPUB_base_url is not known; did you mean SOCIALPUB_BASE_URL?" in told
    assert "SOCIALPUB_ZZZZZZZZZZ is not known; leave it out" in told
    assert "hush" not in told


def test_a_wrong_value_from_the_environment_names_its_variable(mistakes):
    told = mistakes(SOCIALPUB_PUBLISHING__WORKERS="many")
    assert 'publishing.workers (from SOCIALPUB_PUBLISHING__WORKERS) = "many"' in told


# --- mistakes --------------------------------------------------------------------------------------------------------


def test_all_mistakes_are_told_at_once_each_with_key_value_and_remedy(mistakes):
    told = mistakes(
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
    assert "8 mistakes" in told
    assert told.count("\n- ") == 8
    assert 'listen = "8000"' in told
    assert "publishing.workers = 0" in told
    assert "from 1 to 64 (default 8)" in told
    assert "publishing.give_up_afte is not known; did you mean publishing.give_up_after?" in told
    assert "give_up_after is not known; did you mean publishing.give_up_after?" in told
    assert "loging is not known; did you mean logging?" in told
    assert "providers.mastodon is not known; leave it out" in told
    assert '"human" or "json"' in told
    assert "SOCIALPUB_RATE_LIMIT__FAILED_KEYS_PER_MINUTE" in told


def test_a_value_where_a_section_belongs_says_how_a_section_is_written(mistakes):
    told = mistakes('providers = "hush"', SOCIALPUB_PROVIDERS__X__CLIENT_ID="abc")
    assert "providers must be a section: write [providers]" in told
    assert "hush" not in told


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
def test_the_value_of_a_secret_is_never_told(mistakes, text):
    assert "12345678" not in mistakes(text)


def test_a_secret_shows_in_no_repr(configured):
    s = configured('[providers.x]\nclient_id = "id"\nclient_secret = "hush-hush"')
    assert s.providers.x.client_secret.get_secret_value() == "hush-hush"
    assert "hush" not in f"{s!r} {s} {s.model_dump()} {s.model_dump_json()}"


# --- secrets from files ----------------------------------------------------------------------------------------------


def test_credentials_lose_the_white_space_that_copying_added(configured):
    s = configured('[providers.x]\nclient_id = " id\\n"\nclient_secret = "\\tsecret \\n"')
    assert s.providers.x.client_id == "id"
    assert s.providers.x.client_secret.get_secret_value() == "secret"


def test_a_secret_may_lie_in_a_file_beside_the_configuration(configured, tmp_path):
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


def test_a_secret_file_that_cannot_serve_is_told_with_where_it_was_looked_for(mistakes, tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    for name, reason in (("gone", "there is no"), ("empty", "is empty"), ("binary", "not UTF-8"), ("folder", "cannot")):
        told = mistakes(f'[providers.tiktok]\nclient_secret_file = "{name}"')
        assert reason in told
        assert "providers.tiktok.client_secret_file" in told
        assert str(tmp_path / name) in told


def test_a_secret_given_twice_is_a_mistake(mistakes, tmp_path):
    (tmp_path / "s").write_text("one")
    told = mistakes('[providers.x]\nclient_secret = "two"\nclient_secret_file = "s"')
    assert "both set" in told
    assert "two" not in told


# --- upload hosts ----------------------------------------------------------------------------------------------------


def test_upload_hosts_of_the_networks_own_are_allowed_and_their_look_alikes_are_not(configured):
    tiktok, pinterest = configured().providers.tiktok, configured().providers.pinterest
    assert tiktok.allows_upload_host("open-upload.tiktokapis.com")
    assert tiktok.allows_upload_host("UPLOAD.us.tiktokapis.com")
    assert pinterest.allows_upload_host("pinterest-media-upload.s3-accelerate.amazonaws.com")
    for host in (
        "upload.tiktokapis.com",
        "upload.a.b.tiktokapis.com",
        "upload..tiktokapis.com",
        "evil.com",
        "open-upload.tiktokapis.com.evil.com",
        "xopen-upload.tiktokapis.com",
        "",
    ):
        assert not tiktok.allows_upload_host(host), host
    assert not pinterest.allows_upload_host("amazonaws.com")
    assert not pinterest.allows_upload_host("x.notamazonaws.com")


def test_the_host_of_an_api_url_pointed_elsewhere_is_allowed_and_the_networks_own_api_host_is_not(configured):
    s = configured('[providers.tiktok]\napi_url = "http://127.0.0.1:9000/tiktok"')
    assert s.providers.tiktok.allows_upload_host("127.0.0.1")
    assert not s.providers.pinterest.allows_upload_host("127.0.0.1")
    assert not configured().providers.tiktok.allows_upload_host("open.tiktokapis.com")


def test_an_upload_host_is_a_name_and_nothing_more(mistakes):
    for wrong in ("https://a.example", "a.example/path", "a.example:443", "*", "a.*", "a*.example", ""):
        assert "providers.x.upload_hosts" in mistakes(f'[providers.x]\nupload_hosts = ["{wrong}"]')
