"""What the sandbox's TikTok refuses, and what it pulls."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.models import FRIENDS, ONLY_ME, PUBLIC
from tests.samples import media
from tests.sandbox.pinterest_caller import picture
from tests.sandbox.tiktok_caller import FILM, TikToker, code, publish_id
from tests.support.hand_clock import HandClock

HERE = "https://media.example.net/p/"


@pytest.fixture
def demo(world: World, web: TestClient) -> TikToker:
    return TikToker(web, world)


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


def test_the_creator_says_what_may_be_chosen(world: World, web: TestClient, demo: TikToker) -> None:
    data = demo.creator().json()["data"]
    assert data["privacy_level_options"] == [PUBLIC, FRIENDS, ONLY_ME]
    assert (data["creator_username"], data["max_video_post_duration_sec"], data["duet_disabled"]) == (
        "demo",
        600,
        False,
    )
    private = TikToker(web, world, "studio").creator().json()["data"]
    assert private["privacy_level_options"][0] == "FOLLOWER_OF_CREATOR"
    assert (private["duet_disabled"], private["stitch_disabled"], private["comment_disabled"]) == (True, True, False)
    drafts_only = TikToker(web, world, "demo", ("user.info.basic", "video.upload"))
    assert code(drafts_only.creator()) == "scope_not_authorized"


def test_the_creator_is_told_of_bans_and_caps_with_200(world: World, demo: TikToker) -> None:
    world.tiktok.change_account("demo", banned=True)
    answer = demo.creator()
    assert (answer.status_code, code(answer)) == (200, "spam_risk_user_banned_from_posting")
    assert (demo.begin().status_code, code(demo.begin())) == (403, "spam_risk_user_banned_from_posting")
    world.tiktok.next("creator_info").refuses("reached_active_user_cap")
    assert demo.creator().status_code == 200


def test_a_day_has_fifteen_posts(world: World, demo: TikToker, clock: HandClock) -> None:
    world.tiktok.limits["video_init"] = 100
    for _ in range(15):
        assert code(demo.begin()) == "ok"
    assert code(demo.begin()) == "spam_risk_too_many_posts"
    assert code(demo.creator()) == "spam_risk_too_many_posts"
    clock.forward(86399)
    world.tiktok.access_seconds = 10**6
    demo.token = world.tiktok.grant("demo")["accessToken"]
    assert code(demo.begin()) == "spam_risk_too_many_posts"
    clock.forward(1)
    assert code(demo.begin()) == "ok"


def test_an_unaudited_app_posts_for_five_users_on_private_accounts_and_for_themselves(
    world: World, web: TestClient
) -> None:
    world.tiktok.audited = False
    public = TikToker(web, world, client_id="app")
    assert code(public.begin()) == "unaudited_client_can_only_post_to_private_accounts"
    for number in range(6):
        world.tiktok.add_account(f"private{number}", private=True)
        caller = TikToker(web, world, f"private{number}", client_id="app")
        if number == 0:
            assert code(caller.begin(privacy_level=FRIENDS)) == "unaudited_client_can_only_post_to_private_accounts"
        assert code(caller.begin()) == ("ok" if number < 5 else "reached_active_user_cap")
    world.tiktok.unaudited_options = "self_only"
    assert public.creator().json()["data"] == {}
    first = TikToker(web, world, "private0", client_id="app")
    assert first.creator().json()["data"]["privacy_level_options"] == [ONLY_ME]


def test_six_inits_fit_into_a_sliding_minute(demo: TikToker, clock: HandClock) -> None:
    for _ in range(6):
        assert code(demo.begin()) == "ok"
        clock.forward(5)
    assert (demo.begin().status_code, code(demo.begin())) == (429, "rate_limit_exceeded")
    clock.forward(30)
    assert code(demo.begin()) == "ok"
    assert code(demo.begin()) == "rate_limit_exceeded"


def test_bearer_comes_before_scope_and_scope_before_the_body(world: World, web: TestClient) -> None:
    narrow = TikToker(web, world, "demo", ("user.info.basic",))
    assert code(narrow.call("/post/publish/video/init/", {})) == "scope_not_authorized"
    narrow.token = "act.unknown"
    refused = narrow.call("/post/publish/video/init/", {})
    assert (refused.status_code, code(refused)) == (401, "access_token_invalid")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "source info"),
        ({"source_info": {"source": "FTP"}}, "source info"),
        ({"source_info": {"source": "FILE_UPLOAD"}}, "post info"),
        ({"source_info": {"source": "FILE_UPLOAD"}, "post_info": {"privacy_level": ONLY_ME}}, "source info"),
        ({"source_info": {"source": "FILE_UPLOAD"}, "post_info": {"privacy_level": ONLY_ME, "is_aigc": 1}}, "is_aigc"),
        (
            {"source_info": {"source": "FILE_UPLOAD"}, "post_info": {"privacy_level": ONLY_ME, "title": "😀" * 1101}},
            "2200",
        ),
    ],
)
def test_a_body_that_is_not_right_is_400_and_says_why(demo: TikToker, body: Any, message: str) -> None:
    answer = demo.call("/post/publish/video/init/", body)
    assert (answer.status_code, code(answer)) == (400, "invalid_params")
    assert message in answer.json()["error"]["message"]
    assert len(answer.json()["error"]["log_id"]) == 34


def test_a_privacy_level_must_be_one_of_the_users_own(world: World, demo: TikToker) -> None:
    assert code(demo.begin(privacy_level="FOLLOWER_OF_CREATOR")) == "privacy_level_option_mismatch"
    no_choice = {"post_info": {"title": "a"}, "source_info": {"source": "FILE_UPLOAD"}}
    assert code(demo.call("/post/publish/video/init/", no_choice)) == "privacy_level_option_mismatch"
    world.tiktok.change_account("demo", private=True)
    assert code(demo.begin(privacy_level=PUBLIC)) == "privacy_level_option_mismatch"


# --- pulls -----------------------------------------------------------------------------------------------------------


def test_photos_are_pulled_and_posted(world: World, demo: TikToker) -> None:
    asked = serve(world, one=picture(600, 800), two=picture(800, 600, "WEBP"))
    begun = demo.photos(HERE + "one.jpg?sig=1", HERE + "two.webp?sig=2", title="Two views", description="From #here")
    assert publish_id(begun).startswith("p_pub_url~v2.")
    assert asked == [], "first things first"
    first, second = demo.status(publish_id(begun)), demo.status(publish_id(begun))
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
def test_one_bad_photo_fails_them_all(world: World, demo: TikToker, data: bytes | None, reason: str) -> None:
    serve(world, good=picture(), **({} if data is None else {"bad": data}))
    begun = publish_id(demo.photos(HERE + "good.jpg", HERE + "bad.jpg"))
    demo.status(begun)
    assert demo.status(begun)["fail_reason"] == reason
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
def test_only_verified_addresses_are_pulled_from(world: World, demo: TikToker, url: str) -> None:
    serve(world)
    assert code(demo.pull(url)) == "url_ownership_unverified"
    assert code(demo.photos(HERE + "a.jpg", url)) == "url_ownership_unverified"
    assert world.tiktok.tasks.all == {}


def test_a_domain_covers_its_subdomains(world: World, demo: TikToker) -> None:
    world.tiktok.verified_domains.append("example.net")
    assert code(demo.pull("https://media.example.net/any/film.mp4")) == "ok"
    assert code(demo.pull("https://badexample.net/film.mp4")) == "url_ownership_unverified"


def test_a_prefix_is_verified_by_the_file_that_lies_under_it(world: World, demo: TikToker) -> None:
    claim = world.tiktok.add_property(HERE)
    files = {HERE + claim.file_name: b"something else"}
    world.tiktok.fetch = lambda url: files[url]
    assert not world.tiktok.verify(HERE)
    assert code(demo.pull(HERE + "film.mp4")) == "url_ownership_unverified"
    files[HERE + claim.file_name] = claim.content.encode() + b"\n"
    assert world.tiktok.verify(HERE)
    assert code(demo.pull(HERE + "film.mp4")) == "ok"


def test_a_pull_that_nobody_asks_about_happens_all_the_same(world: World, demo: TikToker) -> None:
    serve(world, one=picture())
    world.tiktok.next("content_init").fails_after_effect(500)
    assert demo.photos(HERE + "one.jpg").status_code == 500
    assert world.tiktok.posts == []
    assert len(world.tiktok.catch_up()) == 1


def test_a_pull_can_be_cancelled_before_it_has_begun(world: World, demo: TikToker) -> None:
    serve(world, film=FILM)
    begun = publish_id(demo.pull(HERE + "film.mp4"))
    answer = demo.call("/post/publish/cancel/", {"publish_id": begun})
    assert set(answer.json()) == {"error"}
    assert demo.status(begun)["fail_reason"] == "publish_cancelled"
    assert code(demo.call("/post/publish/cancel/", {"publish_id": begun})) == "publish_not_cancellable"


def test_a_pull_that_begins_too_late_fails(world: World, demo: TikToker, clock: HandClock) -> None:
    serve(world, film=FILM)
    begun = publish_id(demo.pull(HERE + "film.mp4"))
    clock.forward(3600)
    assert demo.status(begun)["fail_reason"] == "video_pull_failed"


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
def test_photos_have_rules_of_their_own(world: World, demo: TikToker, changes: dict[str, Any]) -> None:
    serve(world)
    body: dict[str, Any] = {
        "media_type": "PHOTO",
        "post_mode": "DIRECT_POST",
        "post_info": {"privacy_level": ONLY_ME},
        "source_info": {"source": "PULL_FROM_URL", "photo_images": [HERE + "a"], "photo_cover_index": 0},
    }
    assert code(demo.call("/post/publish/content/init/", body)) == "ok"
    answer = demo.call("/post/publish/content/init/", body | changes)
    assert (answer.status_code, code(answer)) == (400, "invalid_params")


def test_photo_drafts_need_a_new_app_and_their_own_scope(world: World, web: TestClient, demo: TikToker) -> None:
    serve(world, one=picture())
    begun = publish_id(demo.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD"))
    demo.status(begun)
    assert demo.status(begun)["status"] == "SEND_TO_USER_INBOX"
    world.tiktok.change_account("demo", app_version="31.7.9")
    assert code(demo.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD")) == "app_version_check_failed"
    direct_only = TikToker(web, world, "demo", ("video.publish",))
    assert code(direct_only.photos(HERE + "one.jpg", mode="MEDIA_UPLOAD")) == "scope_not_authorized"


# --- looking into films ----------------------------------------------------------------------------------------------


def test_films_are_looked_into(world: World, demo: TikToker, tmp_path: Path) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.limits["video_init"] = 100

    def end(path: Path) -> str:
        data = demo.status(demo.post(path.read_bytes()))
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
    broken.write_bytes(FILM)
    assert end(broken) == "file_format_check_failed"
    world.tiktok.probes_video = False
    assert end(broken) == "PUBLISH_COMPLETE"
    assert len(world.tiktok.posts) == 2
