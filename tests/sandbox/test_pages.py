"""What holds for the pages of all networks."""

import re

from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.pinterest_client import PinterestClient
from tests.sandbox.tiktok_client import TikTokClient
from tests.sandbox.x_client import XClient


def test_pages_need_no_script_and_no_foreign_host(
    world: World, web: TestClient, x: XClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.probes_video = False
    x.post("plain")
    tiktok.post()
    pinterest.pin()
    for path in ("/", "/x/feed", "/tiktok/feed", "/pinterest/feed", "/tiktok/@demo"):
        page = web.get(path)
        assert page.status_code == 200
        assert "script-src" not in page.headers["content-security-policy"]
        assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", page.text)
    assert web.get("/sandbox.css").headers["content-type"].startswith("text/css")


def test_the_front_page_counts_what_is_up(
    world: World, web: TestClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.probes_video = False
    tiktok.post()
    pinterest.pin()
    front = web.get("/").text
    assert "1 post is up" in front
    assert "1 pin is up" in front
