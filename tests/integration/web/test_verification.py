"""The file with which TikTok verifies the domain."""

from typing import Any

import pytest

from socialpub.core.settings.networks import TikTokSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller

NAME, CONTENT = "tiktokAbC123.txt", "tiktok-developers-site-verification=AbC123"


@pytest.fixture
def appliance_options() -> dict[str, Any]:
    section = TikTokSection(verification_file=NAME, verification_content=CONTENT)
    return {"networks": ProvidersSection(tiktok=section)}


@pytest.mark.parametrize("folder", ["/", "/storage/media/"])
def test_the_verification_file_is_served_at_the_root_and_below_the_media(rt: Runtime, folder: str) -> None:
    with Caller(create_app(rt), "") as caller:
        answer = caller.ask("GET", folder + NAME)
        assert (answer.status, answer.body) == (200, CONTENT.encode())
        assert answer.headers["content-type"].startswith("text/plain")
        assert caller.ask("GET", folder + "tiktokOther.txt").status in (403, 404)


@pytest.mark.parametrize("name", ["folder/file.txt", "../secret.key", "file", "a b.txt"])
def test_only_a_plain_file_name_is_accepted(name: str) -> None:
    with pytest.raises(ValueError, match="file name"):
        TikTokSection(verification_file=name)
