"""A signed URL is valid for one purpose, one file and a limited time."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from socialpub.core.errors import Forbidden
from socialpub.core.secrets import signed_urls
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECRETS = Secrets(b"k" * 32)
ARTIFACT = "019aa5c0-0000-7000-8000-000000000001"
KEY = f"01/{ARTIFACT}-0123456789abcdef.png"


def settings(base_url="http://127.0.0.1:8000"):
    return Settings(base_url=base_url)


def upload_query(**more):
    return urlsplit(signed_urls.upload_url(settings(**more), SECRETS, ARTIFACT, "image/png", NOW)).query


def media_query(**more):
    return urlsplit(signed_urls.media_url(settings(**more), SECRETS, KEY, NOW)).query


def test_an_upload_url_is_valid_for_an_hour():
    query = upload_query()
    signed_urls.check_upload(SECRETS, ARTIFACT, "image/png", query, NOW + timedelta(minutes=59, seconds=59))
    with pytest.raises(Forbidden, match="expired"):
        signed_urls.check_upload(SECRETS, ARTIFACT, "image/png", query, NOW + timedelta(hours=1))


def test_checking_a_read_url_returns_the_remaining_seconds():
    assert signed_urls.check_media(SECRETS, KEY, media_query(), NOW + timedelta(minutes=50)) == 600
    with pytest.raises(Forbidden, match="expired"):
        signed_urls.check_media(SECRETS, KEY, media_query(), NOW + timedelta(hours=2))


def test_a_read_url_can_have_another_lifetime():
    url = signed_urls.media_url(settings(), SECRETS, KEY, NOW, timedelta(hours=49))
    assert signed_urls.check_media(SECRETS, KEY, urlsplit(url).query, NOW + timedelta(hours=48)) == 3600


def test_the_form_of_the_urls():
    upload = urlsplit(signed_urls.upload_url(settings(), SECRETS, ARTIFACT, "image/png", NOW))
    assert (upload.scheme, upload.netloc, upload.path) == ("http", "127.0.0.1:8000", f"/storage/uploads/{ARTIFACT}")
    names = [pair.partition("=")[0] for pair in upload.query.split("&")]
    assert names == ["expires", "signature"]
    assert urlsplit(signed_urls.media_url(settings(), SECRETS, KEY, NOW)).path == f"/storage/media/{KEY}"


def test_a_signature_includes_the_method():
    expires = int((NOW + timedelta(hours=1)).timestamp())
    put = SECRETS.sign("PUT", f"/storage/media/{KEY}", str(expires))
    with pytest.raises(Forbidden):
        signed_urls.check_media(SECRETS, KEY, f"expires={expires}&signature={put}", NOW)
    get = SECRETS.sign("GET", f"/storage/uploads/{ARTIFACT}", str(expires), "content-type:image/png")
    with pytest.raises(Forbidden):
        signed_urls.check_upload(SECRETS, ARTIFACT, "image/png", f"expires={expires}&signature={get}", NOW)


def test_a_signature_is_for_one_path_one_type_and_one_secret():
    other = ARTIFACT[:-1] + "2"
    for artifact, mime_type, secrets in (
        (other, "image/png", SECRETS),
        (ARTIFACT, "image/jpeg", SECRETS),
        (ARTIFACT, "image/png", Secrets(b"x" * 32)),
    ):
        with pytest.raises(Forbidden, match="signature is not valid"):
            signed_urls.check_upload(secrets, artifact, mime_type, upload_query(), NOW)


def test_the_expiry_is_part_of_what_is_signed():
    later = upload_query().replace("expires=1", "expires=2")
    with pytest.raises(Forbidden, match="signature is not valid"):
        signed_urls.check_upload(SECRETS, ARTIFACT, "image/png", later, NOW)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "expires=",
        "signature=abc",
        "expires=9999999999",
        "expires=99&expires=99&signature=abc",
        "expires=99&signature=a&signature=b",
        "expires=nan&signature=abc",
        "expires=１７&signature=abc",
        "expires=-5&signature=abc",
        "expires=1e9&signature=abc",
        "expires=99&signature=%ff%00",
        "&" * 5000,
    ],
)
def test_every_invalid_signature_has_the_same_error(query):
    with pytest.raises(Forbidden, match="signature is not valid"):
        signed_urls.check_media(SECRETS, KEY, query, NOW)


def test_a_path_with_a_line_break_is_never_valid():
    # Parts are joined by line breaks: such a path could spell the parts of another signature.
    expires = str(int(NOW.timestamp()) + 60)
    forged = SECRETS.sign("GET", "/storage/media/a", "b", expires)
    with pytest.raises(Forbidden):
        signed_urls.check_media(SECRETS, "a\nb", f"expires={expires}&signature={forged}", NOW)


def test_neither_the_host_nor_the_path_of_base_url_is_signed():
    elsewhere = settings(base_url="https://home.example.net/social")
    url = urlsplit(signed_urls.media_url(elsewhere, SECRETS, KEY, NOW))
    assert url.path == f"/social/storage/media/{KEY}"
    assert url.query == media_query()
