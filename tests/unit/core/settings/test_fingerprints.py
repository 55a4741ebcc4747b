"""Two configurations are compared by their values, which the comparison does not show."""

from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings import loader

SIGN = Secrets(b"k" * 32).sign


def read(tmp_path, text, environ=None):
    file = tmp_path / "config.toml"
    file.write_text(text)
    return loader.load(file, environ or {}).fingerprints(SIGN)


def test_what_changed_is_named_by_its_key(tmp_path):
    before = read(tmp_path, '[providers.x]\nclient_id = "a"\nclient_secret = "hush"\n')
    now = read(tmp_path, 'listen = "[::1]:80"\n[providers.x]\nclient_id = "a"\nclient_secret = "other"\n')
    assert loader.changed_keys(before, now) == ["listen", "providers.x.client_secret"]
    assert loader.changed_keys(before, before) == []
    assert "hush" not in str(before)


def test_where_a_value_came_from_does_not_count(tmp_path):
    (tmp_path / "x.secret").write_text("hush\n")
    in_the_file = read(tmp_path, 'base_url = "http://a"\n[providers.x]\nclient_secret = "hush"\n')
    elsewhere = read(tmp_path, '[providers.x]\nclient_secret_file = "x.secret"\n', {"SOCIALPUB_BASE_URL": "http://a"})
    assert loader.changed_keys(in_the_file, elsewhere) == []


def test_equal_values_of_two_keys_or_two_installations_look_different(tmp_path):
    found = read(tmp_path, '[providers.x]\nclient_id = "a"\n[providers.pinterest]\nclient_id = "a"\n')
    assert found["providers.x.client_id"] != found["providers.pinterest.client_id"]
    settings = loader.load(tmp_path / "config.toml", {})
    assert settings.fingerprints(Secrets(b"l" * 32).sign)["providers.x.client_id"] != found["providers.x.client_id"]


def test_keys_that_only_one_version_knows_are_no_change(tmp_path):
    now = read(tmp_path, "")
    assert loader.changed_keys({"a.key.of.yesterday": "x"}, now) == []
