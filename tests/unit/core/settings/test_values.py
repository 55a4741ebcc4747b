"""The kinds of values: strict, trimmed, and secret where they have to be."""

import pytest


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://x", "http://", "https:///p", "http://x?q", "http://x#f", "http://u@x", "http://x:70000",
     "http://x y", "http://x\\n", "http://ü.de", "http://x:0"],
)  # fmt: skip
def test_an_address_that_nobody_can_reach_is_refused(mistakes, url):
    assert "base_url" in mistakes(f'base_url = "{url}"')


def test_nothing_is_coerced_silently(mistakes):
    assert "publishing.workers" in mistakes('[publishing]\nworkers = "8"')
    assert "providers.tiktok.pkce" in mistakes("[providers.tiktok]\npkce = 1")
    assert "providers.x.client_id" in mistakes("[providers.x]\nclient_id = 5")
    assert "publishing.give_up_after" in mistakes("[publishing]\ngive_up_after = 48")


def test_a_secret_shows_in_no_repr(configured):
    s = configured('[providers.x]\nclient_id = "id"\nclient_secret = "hush-hush"')
    assert s.providers.x.client_secret.get_secret_value() == "hush-hush"
    assert "hush" not in f"{s!r} {s} {s.model_dump()} {s.model_dump_json()}"


def test_credentials_lose_the_white_space_that_copying_added(configured):
    s = configured('[providers.x]\nclient_id = " id\\n"\nclient_secret = "\\tsecret \\n"')
    assert s.providers.x.client_id == "id"
    assert s.providers.x.client_secret.get_secret_value() == "secret"
