"""The file with which TikTok verifies the domain."""

import pytest

from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller

NAME, CONTENT = "tiktokAbC123.txt", "tiktok-developers-site-verification=AbC123"


@pytest.mark.parametrize("folder", ["/", "/storage/media/"])
def test_the_verification_file_is_served_at_the_root_and_below_the_media(rt, folder):
    (rt.settings.data_dir / NAME).write_text(CONTENT)
    with Caller(create_app(rt), "") as caller:
        answer = caller.ask("GET", folder + NAME)
        assert (answer.status, answer.body) == (200, CONTENT.encode())
        assert answer.headers["content-type"].startswith("text/plain")
        assert caller.ask("GET", folder + "tiktokOther.txt").status in (403, 404)


@pytest.mark.parametrize("name", ["secret.key", "notes.txt", "tiktok..txt", "tiktok%2F..%2F..%2Fa.txt", "tiktok a.txt"])
def test_no_other_file_of_the_data_folder_is_served(rt, name):
    for path in ("notes.txt", "tiktok..txt", "tiktok a.txt"):
        (rt.settings.data_dir / path).write_text("private")
    with Caller(create_app(rt), "") as caller:
        for folder in ("/", "/storage/media/"):
            answer = caller.ask("GET", folder + name)
            assert answer.status in (403, 404)
            assert b"private" not in answer.body
