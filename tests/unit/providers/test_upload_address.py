"""Allowed upload URLs, and messages about others."""

import pytest

from socialpub.core.settings.networks import NetworkSection, PinterestSection, TikTokSection
from socialpub.providers.base import refuse_upload_address

TIKTOK = TikTokSection()
TIKTOK_STAND_IN = TikTokSection(api_url="http://127.0.0.1:9000/tiktok")
PINTEREST = PinterestSection()
PINTEREST_STAND_IN = PinterestSection(api_url="http://127.0.0.1:8123/pinterest/v5")
ELSEWHERE = PinterestSection(api_url="http://api.test/v5", upload_hosts=("up.test",))


def complaint_about(address: str, section: NetworkSection) -> str | None:
    tiktok = isinstance(section, TikTokSection)
    held = refuse_upload_address(address, section, *(("tiktok", "TikTok") if tiktok else ("pinterest", "Pinterest")))
    return held and held.reason


@pytest.mark.parametrize(
    ("section", "address"),
    [
        (TIKTOK, "https://open-upload.tiktokapis.com/video/?upload_id=7000&upload_token=demo"),
        (TIKTOK, "https://upload.us.tiktokapis.com:443/video/?a=b"),
        (TIKTOK, "https://OPEN-UPLOAD.tiktokapis.com/x"),
        (TIKTOK, "https://open-upload-va.tiktokapis.com/upload?upload_id=7"),
        (TIKTOK, "https://open-upload-i18n.tiktokapis.com/upload?upload_id=7"),
        (TIKTOK, "https://open-upload.us.tiktokapis.com/upload?upload_id=7"),
        (TIKTOK_STAND_IN, "http://127.0.0.1:9000/tiktok/upload?t=1"),
        (PINTEREST, "https://pinterest-media-upload.s3-accelerate.amazonaws.com/"),
        (PINTEREST, "https://bucket.s3.amazonaws.com:443/"),
        (PINTEREST_STAND_IN, "http://127.0.0.1:8123/upload"),
        (PINTEREST_STAND_IN, "http://127.0.0.1/upload"),
        (PINTEREST_STAND_IN, "https://pinterest-media-upload.s3-accelerate.amazonaws.com/"),
        (ELSEWHERE, "http://up.test/"),
    ],
)
def test_a_listed_host_and_a_simulated_network_get_the_bytes(section, address):
    assert complaint_about(address, section) is None


@pytest.mark.parametrize(
    ("section", "address"),
    [
        (TIKTOK, "http://open-upload.tiktokapis.com/video/?t=secret"),
        (TIKTOK, "https://me:secret@open-upload.tiktokapis.com/video/"),
        (TIKTOK, "https://open-upload.tiktokapis.com@evil.example/?t=secret"),
        (TIKTOK, "https://evil.example\\@open-upload.tiktokapis.com/?t=secret"),
        (TIKTOK, "https://evil.example/?t=secret&open-upload.tiktokapis.com"),
        (TIKTOK, "https://tiktokapis.com/?t=secret"),
        (TIKTOK, "https://open-upload.xtiktokapis.com/?t=secret"),
        (TIKTOK, "https://open-upload.tiktokapis.com.evil.example/?t=secret"),
        (TIKTOK, "https://169.254.169.254/?t=secret"),
        (TIKTOK, "https://open-upload.tiktokapis.com/ ?t=secret"),
        (TIKTOK, "ftp://open-upload.tiktokapis.com/?t=secret"),
        (TIKTOK, ""),
        (TIKTOK, "http://127.0.0.1:9000/upload?t=secret"),
        (TIKTOK_STAND_IN, "http://evil.example/upload?t=secret"),
        (PINTEREST, "http://bucket.s3.amazonaws.com/"),
        (PINTEREST, "https://api.pinterest.com/"),
        (PINTEREST, "https://amazonaws.com.evil.example/"),
        (PINTEREST, "https://evil.example#.amazonaws.com/"),
        (PINTEREST, "https://evil.example\\.amazonaws.com/"),
        (PINTEREST, "https://user@bucket.amazonaws.com/"),
        (PINTEREST, "https://bücket.amazonaws.com/"),
        (PINTEREST, "https://bucket.amazonaws.com:x/"),
        (PINTEREST, "file:///etc/passwd"),
        (PINTEREST, "https://[::1/"),
        (PINTEREST_STAND_IN, "http://192.168.0.1:8123/"),
    ],
)
def test_other_hosts_get_nothing_and_the_address_stays_secret(section, address):
    said = complaint_about(address, section)
    assert said is not None
    assert "secret" not in said


def test_a_wrong_host_names_the_setting_that_would_allow_it():
    said = complaint_about("https://uploads.example:8443/?t=1", PINTEREST)
    assert said is not None
    assert "the upload host uploads.example, which upload_hosts in [providers.pinterest] does not list" in said
    assert "8443" not in said


@pytest.mark.parametrize(
    ("section", "address", "port", "allowed"),
    [
        (TIKTOK, "https://open-upload.tiktokapis.com:8443/video/", "8443", "port 443."),
        (PINTEREST, "https://bucket.s3.amazonaws.com:8443/", "8443", "port 443."),
        (PINTEREST_STAND_IN, "http://127.0.0.1:8124/upload", "8124", "port 80 or 8123."),
        (ELSEWHERE, "http://up.test:9000/", "9000", "port 80."),
    ],
)
def test_a_wrong_port_of_a_listed_host_is_named(section, address, port, allowed):
    said = complaint_about(address, section)
    assert said is not None
    assert f"returned port {port} of the upload host" in said
    assert f"allows this host only with {allowed}" in said
    assert "does not list" not in said
