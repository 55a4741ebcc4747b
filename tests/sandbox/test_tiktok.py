"""Shares on the sandbox's TikTok: uploads, pulls, what is refused, and how a share ends."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.tasks import FRIENDS, ONLY_ME, PUBLIC
from tests.samples import media
from tests.sandbox.clients import TikTokClient, error_code, publish_id
from tests.sandbox.files import MP4, picture
from tests.stand_ins.tiktok import chunk_plan_complaint
from tests.support.hand_clock import HandClock

# --- the plan, the chunks, the end ------------------------------------------------------------------------------------


MEGA = 1_000_000


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.tiktok.probes_video = False
    world.tiktok.moderation_seconds = 0


@pytest.mark.parametrize(
    ("size", "chunk_size", "count"),
    [
        (1_000_000, 1_000_000, 1),
        (4_999_999, 4_999_999, 1),
        (64_000_000, 64_000_000, 1),
        (64_000_001, 10_000_000, 6),
        (50_000_123, 10_000_000, 5),
        (158_008_374, 5_242_880, 30),
        (602_285_541, 10_000_000, 60),
        (4_294_967_296, 10_000_000, 429),
    ],
)
def test_the_plans_of_the_documents_are_taken(size: int, chunk_size: int, count: int) -> None:
    assert chunk_plan_complaint(size, chunk_size, count) == ""


@pytest.mark.parametrize(
    ("size", "chunk_size", "count", "wrong"),
    [
        (64_000_001, 10_000_000, 7, "The total chunk count is invalid"),
        (15_000_000, 10_000_000, 2, "The total chunk count is invalid"),
        (15_000_000, 10_000_000, 1, "The chunk size is invalid"),
        (64_000_001, 64_000_001, 1, "The chunk size is invalid"),
        (8_000_000, 4_000_000, 2, "The chunk size is invalid"),
        (5_000_000_000, 10_000_000, 500, "The chunk size is invalid"),
        (0, 0, 1, "The chunk size is invalid"),
    ],
)
def test_other_plans_are_refused(size: int, chunk_size: int, count: int, wrong: str) -> None:
    assert chunk_plan_complaint(size, chunk_size, count) == wrong


def test_a_video_in_one_chunk_is_posted(world: World, tiktok: TikTokClient) -> None:
    begun = tiktok.begin(title="Evening light #demo", disable_comment=True)
    data = begun.json()["data"]
    assert data["publish_id"].startswith("v_pub_file~v2-1.")
    assert len(data["upload_url"]) <= 256
    taken = tiktok.put(begun, MP4)
    assert (taken.status_code, taken.content) == (201, b"")
    assert taken.headers["content-range"] == f"bytes 0-{len(MP4)}/{len(MP4)}"
    first, second = tiktok.status(publish_id(begun)), tiktok.status(publish_id(begun))
    assert first == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": len(MP4)}
    assert second["status"] == "PUBLISH_COMPLETE"
    assert second["publicaly_available_post_id"] == [], "only the user sees it"
    (post,) = world.tiktok.posts
    assert (post.title, post.privacy, post.options) == ("Evening light #demo", "SELF_ONLY", {"disable_comment": True})
    assert post.media[0].sha256 == hashlib.sha256(MP4).hexdigest()
    assert world.tiktok.counts["video_init"] == 1


def test_a_large_video_needs_whole_chunks_in_order(world: World, tiktok: TikTokClient) -> None:
    data = MP4 + bytes(10 * MEGA + 500 - len(MP4))
    begun = tiktok.begin(len(data), 5 * MEGA, 2)
    (task,) = world.tiktok.tasks.values()
    whole = len(data)
    assert tiktok.put(begun, data[5 * MEGA :], 5 * MEGA, whole).status_code == 416, "not this one yet"
    assert tiktok.put(begun, data[: 4 * MEGA], 0, whole).status_code == 416, "not what the plan says"
    assert tiktok.put(begun, data[: 5 * MEGA], 0, whole).status_code == 206
    assert tiktok.put(begun, data[: 5 * MEGA], 0, whole).status_code == 416, "not again"
    assert tiktok.status(task.publish_id) == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": 5 * MEGA}
    last = tiktok.put(begun, data[5 * MEGA :], 5 * MEGA, whole)
    assert (last.status_code, last.headers["content-range"]) == (201, f"bytes 0-{whole}/{whole}")
    assert task.media[0].sha256 == hashlib.sha256(data).hexdigest()
    assert world.tiktok.cache.get(task.media[0].id) == data


def test_an_upload_url_lives_an_hour_and_unknown_ones_are_404(
    world: World, web: TestClient, tiktok: TikTokClient, clock: HandClock
) -> None:
    begun = tiktok.begin()
    assert web.put("/tiktok/upload/video/?upload_id=1&upload_token=x", content=MP4).status_code == 404
    clock.forward(3600)
    assert tiktok.put(begun, MP4).status_code == 403
    assert world.tiktok.posts == []


def test_a_share_ends_by_time_without_a_status_request(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    tiktok.post()
    assert world.tiktok.posts == []
    clock.forward(30)
    assert len(world.tiktok.posts) == 1


@pytest.mark.parametrize(("ids", "told"), [("one", 1), ("several", 2), ("none", 0), ("missing", None)])
def test_a_public_post_gets_its_id_after_moderation(
    world: World, tiktok: TikTokClient, clock: HandClock, ids: Any, told: int | None
) -> None:
    world.tiktok.post_ids, world.tiktok.processing_ticks, world.tiktok.moderation_seconds = ids, 0, 60
    begun = tiktok.post(privacy_level="PUBLIC_TO_EVERYONE")
    early = tiktok.status(begun).get("publicaly_available_post_id")
    assert early == (None if told is None else [])
    clock.forward(60)
    late = tiktok.status(begun).get("publicaly_available_post_id")
    assert (None if late is None else len(late)) == told
    if told == 1:
        assert late == [int(world.tiktok.posts[0].id)]
        assert late[0] > 2**53
        query = tiktok.ask("/video/query/?fields=id,share_url", {"filters": {"video_ids": [str(late[0])]}}).json()
        assert query["data"]["videos"][0]["share_url"].endswith(f"/tiktok/@demo/video/{late[0]}")


def test_a_draft_waits_in_the_inbox_until_its_user_posts_it(world: World, tiktok: TikTokClient) -> None:
    begun = tiktok.draft()
    assert tiktok.put(begun, MP4).status_code == 201
    tiktok.status(publish_id(begun))
    assert tiktok.status(publish_id(begun))["status"] == "SEND_TO_USER_INBOX"
    assert world.tiktok.posts == []
    world.tiktok.finish_draft(publish_id(begun), 2, "PUBLIC_TO_EVERYONE")
    done = tiktok.status(publish_id(begun))
    assert (done["status"], len(done["publicaly_available_post_id"])) == ("PUBLISH_COMPLETE", 2)
    assert len(world.tiktok.posts) == 2


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


def test_creator_info_reports_bans_and_caps_with_200(world: World, tiktok: TikTokClient) -> None:
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
    assert world.tiktok.tasks == {}


def test_a_pull_that_begins_too_late_fails(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    serve(world, film=MP4)
    begun = publish_id(tiktok.photos(HERE + "a.jpg"))
    clock.forward(3600)
    assert tiktok.status(begun)["fail_reason"] == "photo_pull_failed"


# --- decoding videos ----------------------------------------------------------------------------------------------


def test_videos_are_decoded(world: World, tiktok: TikTokClient, tmp_path: Path) -> None:
    world.tiktok.processing_ticks, world.tiktok.probes_video = 0, True
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
