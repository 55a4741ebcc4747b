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
    for path in ("/", "/accounts", "/x/feed", "/tiktok/feed", "/pinterest/feed", "/tiktok/@demo"):
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


def test_an_account_is_changed_on_a_page_of_the_sandboxs_own(world: World, web: TestClient, x: XClient) -> None:
    assert 'href="accounts"' in web.get("/").text
    sent = {"network": "x", "username": "demo", "handle": "renamed", "name": "Re & named", "picture": "Zebra"}
    answer = web.post("/accounts", data={**sent, "subscription_type": "Premium"})
    assert answer.status_code == 303
    page = web.get(f"/{answer.headers['location']}")
    assert "The account @renamed is changed." in page.text
    assert "Re &amp; named" in page.text
    fields = {"user.fields": "subscription_type,profile_image_url"}
    user = x.call("GET", "/2/users/me", params=fields).json()["data"]
    assert (user["username"], user["name"], user["subscription_type"]) == ("renamed", "Re & named", "Premium")
    assert user["profile_image_url"].endswith("/x/avatars/Zebra_normal.png")
    private = {"network": "tiktok", "username": "demo", "name": "Night", "private": "yes"}
    web.post("/accounts", data=private)
    demo = world.tiktok.existing_account("demo")
    assert (demo.display_name, demo.private) == ("Night", True)


def test_a_change_that_cannot_be_made_changes_nothing(world: World, web: TestClient) -> None:
    for change in ({"handle": "studio"}, {"handle": "two words"}, {"subscription_type": "Gold"}, {"id": "7"}):
        page = web.post("/accounts", data={"network": "x", "username": "demo", "name": "Other", **change})
        assert page.status_code == 400
        assert 'role="alert"' in page.text
    assert web.post("/accounts", data={"network": "myspace", "username": "demo"}).status_code == 400
    assert world.x.existing_account("demo").name == "Demo"


def test_a_form_on_each_feed_scripts_the_next_fault(
    web: TestClient, x: XClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    for network, fault, noted in (
        ("x", "503_after", "answers 503 after posting"),
        ("tiktok", "capped", "daily cap"),
        ("pinterest", "2787", "400 code 2787"),
    ):
        answer = web.post(f"/{network}/feed/faults", data={"fault": fault})
        assert (answer.status_code, answer.headers["location"]) == (303, f"../feed?scripted={fault}")
        assert noted in web.get(f"/{network}/feed?scripted={fault}").text
        assert web.post(f"/{network}/feed/faults", data={"fault": "unknown"}).headers["location"] == "../feed"
    assert x.post("a").status_code == 503
    assert tiktok.creator().json()["error"]["code"] == "spam_risk_too_many_posts"
    assert pinterest.pin().json()["code"] == 2787


def test_media_that_made_room_for_others_are_marked(
    world: World, web: TestClient, x: XClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.probes_video = False
    image = x.upload()
    x.post(media={"media_ids": [image]})
    tiktok.post()
    pinterest.pin()
    world.x.cache.take(image)
    world.tiktok.cache.take(world.tiktok.posts[0].media[0].id)
    world.pinterest.cache.take(world.pinterest.pins[0].pictures[0].id)
    for network in world.networks:
        assert "no longer kept" in web.get(f"/{network}/feed").text
