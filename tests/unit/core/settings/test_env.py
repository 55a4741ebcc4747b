"""Values from the environment, and from files that hold one secret each."""

from datetime import timedelta

from socialpub.core import commands
from socialpub.core.settings import loader


def test_every_key_can_be_set_in_the_environment_and_wins_over_the_file(configured):
    s = configured(
        'base_url = "http://file"\n[publishing]\nworkers = 2',
        SOCIALPUB_BASE_URL="http://variable",
        SOCIALPUB_PUBLISHING__WORKERS="3",
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
    assert s.publishing.workers == 3
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
    message = mistakes(SOCIALPUB_PUBLISHING_WORKERS="3", SOCIALPUB_base_url="x", SOCIALPUB_ZZZZZZZZZZ="hush")
    assert "SOCIALPUB_PUBLISHING_WORKERS is not known; did you mean SOCIALPUB_PUBLISHING__WORKERS?" in message
    assert "SOCIALPUB_base_url is not known; did you mean SOCIALPUB_BASE_URL?" in message
    assert "SOCIALPUB_ZZZZZZZZZZ is not known; leave it out" in message
    assert "hush" not in message


def test_a_wrong_value_from_the_environment_names_its_variable(mistakes):
    message = mistakes(SOCIALPUB_PUBLISHING__WORKERS="many")
    assert 'publishing.workers (from SOCIALPUB_PUBLISHING__WORKERS) = "many"' in message


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


def test_a_secret_file_that_cannot_be_used_is_reported_with_where_it_was_looked_for(mistakes, tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    for name, reason in (("gone", "there is no"), ("empty", "is empty"), ("binary", "not UTF-8"), ("folder", "cannot")):
        message = mistakes(f'[providers.tiktok]\nclient_secret_file = "{name}"')
        assert reason in message
        assert "providers.tiktok.client_secret_file" in message
        assert str(tmp_path / name) in message


def test_a_secret_given_twice_is_a_mistake(mistakes, tmp_path):
    (tmp_path / "s").write_text("one")
    message = mistakes('[providers.x]\nclient_secret = "two"\nclient_secret_file = "s"')
    assert "both set" in message
    assert "two" not in message
