"""What the sandbox's TikTok refuses, and what it pulls."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.models import FRIENDS, ONLY_ME, PUBLIC
from tests.samples import media
from tests.sandbox.files import MP4, picture
from tests.sandbox.tiktok_client import TikTokClient, error_code, publish_id
from tests.support.hand_clock import HandClock

HERE = "https://media.example.net/p/"
SOURCE = {"source": "FILE_UPLOAD", "video_size": 9, "chunk_size": 9, "total_chunk_count": 1}


def serve(world: World, **files: bytes) -> list[str]:
    """What lies under the prefix; the names of calls that were made for it."""
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return files[url.rpartition("/")[2].partition(".")[0]]

    world.tiktok.fetch = fetch
    world.tiktok.verified_prefixes.append(HERE)
    return asked


# --- who may post ----------------------------------------------------------------------------------------------------


def test_the_creator_says_what_may_be_chosen(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    data = tiktok.creator().json()["data"]
    assert data["privacy_level_options"] == [PUBLIC, FRIENDS, ONLY_ME]
    assert (data["creator_username"], data["max_video_post_duration_sec"], data["duet_disabled"]) == (
        "demo",
        600,
        False,
    )
    private = TikTokClient(web, world, "studio").creator().json()["data"]
    assert private["privacy_level_options"][0] == "FOLLOWER_OF_CREATOR"
    assert (private["duet_disabled"], private["stitch_disabled"], private["comment_disabled"]) == (True, True, False)
    drafts_only = TikTokClient(web, world, "demo", ("user.info.basic", "video.upload"))
    assert error_code(drafts_only.creator()) == "scope_not_authorized"


def test_the_creator_is_told_of_bans_and_caps_with_200(world: World, tiktok: TikTokClient) -> None:
    world.tiktok.change_account("demo", banned=True)
    answer = tiktok.creator()
    assert (answer.status_code, error_code(answer)) == (200, "spam_risk_user_banned_from_posting")
    assert (tiktok.begin().status_code, error_code(tiktok.begin())) == (403, "spam_risk_user_banned_from_posting")
    world.tiktok.next("creator_info").refuses("reached_active_user_cap")
    assert tiktok.creator().status_code == 200


def test_a_day_has_fifteen_posts(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    world.tiktok.limits["video_init"] = 100
    for _ in range(15):
        assert error_code(tiktok.begin()) == "ok"
    assert error_code(tiktok.begin()) == "spam_risk_too_many_posts"
    assert error_code(tiktok.creator()) == "spam_risk_too_many_posts"
    clock.forward(86399)
    world.tiktok.access_seconds = 10**6
    tiktok.token = world.tiktok.grant("demo")["accessToken"]
    assert error_code(tiktok.begin()) == "spam_risk_too_many_posts"
    clock.forward(1)
    assert error_code(tiktok.begin()) == "ok"


def test_an_unaudited_app_posts_for_five_users_on_private_accounts_and_for_themselves(
    world: World, web: TestClient
) -> None:
    world.tiktok.audited = False
    public = TikTokClient(web, world, client_id="app")
    assert error_code(public.begin()) == "unaudited_client_can_only_post_to_private_accounts"
    for number in range(6):
        world.tiktok.add_account(f"private{number}", private=True)
        caller = TikTokClient(web, world, f"private{number}", client_id="app")
        if number == 0:
            refused = caller.begin(privacy_level=FRIENDS)
            assert error_code(refused) == "unaudited_client_can_only_post_to_private_accounts"
        assert error_code(caller.begin()) == ("ok" if number < 5 else "reached_active_user_cap")


def test_six_inits_fit_into_a_sliding_minute(tiktok: TikTokClient, clock: HandClock) -> None:
    for _ in range(6):
        assert error_code(tiktok.begin()) == "ok"
        clock.forward(5)
    assert (tiktok.begin().status_code, error_code(tiktok.begin())) == (429, "rate_limit_exceeded")
    clock.forward(30)
    assert error_code(tiktok.begin()) == "ok"
    assert error_code(tiktok.begin()) == "rate_limit_exceeded"


def test_bearer_comes_before_scope_and_scope_before_the_body(world: World, web: TestClient) -> None:
    narrow = TikTokClient(web, world, "demo", ("user.info.basic",))
    assert error_code(narrow.ask("/post/publish/video/init/", {})) == "scope_not_authorized"
    narrow.token = "act.unknown"
    refused = narrow.ask("/post/publish/video/init/", {})
    assert (refused.status_code, error_code(refused)) == (401, "access_token_invalid")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "source info"),
        ({"source_info": {"source": "FTP"}}, "source info"),
        ({"source_info": {"source": "FILE_UPLOAD"}, "post_info": {"privacy_level": ONLY_ME}}, "source info"),
        ({"source_info": SOURCE}, "post info"),
        ({"source_info": SOURCE, "post_info": {"privacy_level": ONLY_ME, "is_aigc": 1}}, "is_aigc"),
        ({"source_info": SOURCE, "post_info": {"privacy_level": ONLY_ME, "title": "😀" * 1101}}, "2200"),
    ],
)
def test_a_body_that_is_not_right_is_400_and_says_why(tiktok: TikTokClient, body: Any, message: str) -> None:
    answer = tiktok.ask("/post/publish/video/init/", body)
    assert (answer.status_code, error_code(answer)) == (400, "invalid_params")
    assert message in answer.json()["error"]["message"]
    assert len(answer.json()["error"]["log_id"]) == 34


def test_a_privacy_level_must_be_one_of_the_users_own(world: World, tiktok: TikTokClient) -> None:
    assert error_code(tiktok.begin(privacy_level="FOLLOWER_OF_CREATOR")) == "privacy_level_option_mismatch"
    no_choice = {"post_info": {"title": "a"}, "source_info": SOURCE}
    assert error_code(tiktok.ask("/post/publish/video/init/", no_choice)) == "privacy_level_option_mismatch"
    world.tiktok.change_account("demo", private=True)
    assert error_code(tiktok.begin(privacy_level=PUBLIC)) == "privacy_level_option_mismatch"


# --- pulls -----------------------------------------------------------------------------------------------------------


def test_photos_are_pulled_and_posted(world: World, tiktok: TikTokClient) -> None:
    asked = serve(world, one=picture(600, 800), two=picture(800, 600, "WEBP"))
    begun = tiktok.photos(HERE + "one.jpg?sig=1", HERE + "two.webp?sig=2", title="Two views", description="From #here")
    assert publish_id(begun).startswith("p_pub_url~v2.")
    assert asked == [], "first things first"
    first, second = tiktok.status(publish_id(begun)), tiktok.status(publish_id(begun))
    assert first["status"] == "PROCESSING_DOWNLOAD"
    assert first["downloaded_bytes"] == sum(item.size for item in world.tiktok.posts[0].media)
    assert second["status"] == "PUBLISH_COMPLETE"
    (post,) = world.tiktok.posts
    assert [(item.mime_type, item.width) for item in post.media] == [("image/jpeg", 600), ("image/webp", 800)]
    assert (post.title, post.description) == ("Two views", "From #here")
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (picture(kind="PNG"), "file_format_check_failed"),
        (picture(1200, 1100), "picture_size_check_failed"),
        (b"nothing at all", "file_format_check_failed"),
        (None, "photo_pull_failed"),
    ],
)
def test_one_bad_photo_fails_them_all(world: World, tiktok: TikTokClient, data: bytes | None, reason: str) -> None:
    serve(world, good=picture(), **({} if data is None else {"bad": data}))
    begun = publish_id(tiktok.photos(HERE + "good.jpg", HERE + "bad.jpg"))
    tiktok.status(begun)
    assert tiktok.status(begun)["fail_reason"] == reason
    assert world.tiktok.posts == []


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example.net/p/a.jpg",
        "http://media.example.net/p/a.jpg",
        "https://media.example.net/q/a.jpg",
        "https://192.0.2.7/p/a.jpg",
        "nonsense",
    ],
)
def test_only_verified_addresses_are_pulled_from(world: World, tiktok: TikTokClient, url: str) -> None:
    serve(world)
    assert error_code(tiktok.photos(HERE + "a.jpg", url)) == "url_ownership_unverified"
    assert world.tiktok.tasks.all == {}


def test_a_domain_covers_its_subdomains(world: World, tiktok: TikTokClient) -> None:
    world.tiktok.verified_domains.append("example.net")
    assert error_code(tiktok.photos("https://media.example.net/any/a.jpg")) == "ok"
    assert error_code(tiktok.photos("https://badexample.net/a.jpg")) == "url_ownership_unverified"


def test_a_prefix_is_verified_by_the_file_that_lies_under_it(world: World, tiktok: TikTokClient) -> None:
    files = {HERE + "proof.txt": b"something else"}
    world.tiktok.fetch = lambda url: files[url]
    assert not world.tiktok.verify(HERE, "proof.txt", "content")
    assert error_code(tiktok.photos(HERE + "a.jpg")) == "url_ownership_unverified"
    files[HERE + "proof.txt"] = b"content\n"
    assert world.tiktok.verify(HERE, "proof.txt", "content")
    assert error_code(tiktok.photos(HERE + "a.jpg")) == "ok"


def test_a_pull_that_nobody_asks_about_happens_all_the_same(world: World, tiktok: TikTokClient) -> None:
    serve(world, one=picture())
    world.tiktok.next("content_init").fails_with(500, after_effect=True)
    assert tiktok.photos(HERE + "one.jpg").status_code == 500
    assert world.tiktok.posts == []
    assert len(world.tiktok.catch_up()) == 1


def test_a_pull_that_begins_too_late_fails(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    serve(world, film=MP4)
    begun = publish_id(tiktok.photos(HERE + "a.jpg"))
    clock.forward(3600)
    assert tiktok.status(begun)["fail_reason"] == "photo_pull_failed"


@pytest.mark.parametrize(
    "changes",
    [
        {"media_type": "VIDEO"},
        {"post_mode": "DIRECT POST"},
        {"source_info": {"source": "FILE_UPLOAD"}},
        {"source_info": {"source": "PULL_FROM_URL", "photo_images": [], "photo_cover_index": 0}},
        {"source_info": {"source": "PULL_FROM_URL", "photo_images": [HERE + "a"] * 36, "photo_cover_index": 0}},
        {"source_info": {"source": "PULL_FROM_URL", "photo_images": [HERE + "a"], "photo_cover_index": 1}},
        {"post_info": {"title": "t" * 91, "privacy_level": ONLY_ME}},
        {"post_info": {"description": "d" * 4001, "privacy_level": ONLY_ME}},
        {"post_info": {}},
    ],
)
def test_photos_have_rules_of_their_own(world: World, tiktok: TikTokClient, changes: dict[str, Any]) -> None:
    serve(world)
    body: dict[str, Any] = {
        "media_type": "PHOTO",
        "post_mode": "DIRECT_POST",
        "post_info": {"privacy_level": ONLY_ME},
        "source_info": {"source": "PULL_FROM_URL", "photo_images": [HERE + "a"], "photo_cover_index": 0},
    }
    assert error_code(tiktok.ask("/post/publish/content/init/", body)) == "ok"
    answer = tiktok.ask("/post/publish/content/init/", body | changes)
    assert (answer.status_code, error_code(answer)) == (400, "invalid_params")


def test_photo_drafts_need_a_new_app_and_their_own_scope(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    serve(world, one=picture())
    begun = publish_id(tiktok.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD"))
    tiktok.status(begun)
    assert tiktok.status(begun)["status"] == "SEND_TO_USER_INBOX"
    world.tiktok.change_account("demo", app_version="31.7.9")
    assert error_code(tiktok.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD")) == "app_version_check_failed"
    direct_only = TikTokClient(web, world, "demo", ("video.publish",))
    assert error_code(direct_only.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD")) == "scope_not_authorized"


# --- looking into films ----------------------------------------------------------------------------------------------


def test_films_are_looked_into(world: World, tiktok: TikTokClient, tmp_path: Path) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.limits["video_init"] = 100

    def end(path: Path) -> str:
        data = tiktok.status(tiktok.post(path.read_bytes()))
        return str(data.get("fail_reason", data["status"]))

    fine = media.video_mp4(tmp_path / "fine.mp4", 1.0, width=480, height=640, rate=30)
    assert end(fine) == "PUBLISH_COMPLETE"
    assert (
        end(media.video_mp4(tmp_path / "small.mp4", 1.0, width=320, height=240, rate=30)) == "picture_size_check_failed"
    )
    assert end(media.video_mp4(tmp_path / "slow.mp4", 1.0, width=480, height=640, rate=10)) == "frame_rate_check_failed"
    world.tiktok.change_account("demo", max_duration=0)
    assert end(fine) == "duration_check_failed"
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(MP4)
    assert end(broken) == "file_format_check_failed"
    world.tiktok.probes_video = False
    assert end(broken) == "PUBLISH_COMPLETE"
    assert len(world.tiktok.posts) == 2
