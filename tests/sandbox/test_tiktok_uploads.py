"""File uploads to the sandbox's TikTok: the plan, the chunks, how it ends."""

import hashlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, World
from socialpub.sandbox.tiktok.media import chunk_plan_complaint
from tests.sandbox.files import MP4
from tests.sandbox.tiktok_client import TikTokClient, error_code, publish_id
from tests.support.hand_clock import HandClock

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


def test_a_film_in_one_piece_is_posted(world: World, tiktok: TikTokClient) -> None:
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


def test_a_large_film_goes_in_chunks_that_come_in_order_and_whole(world: World, tiktok: TikTokClient) -> None:
    data = MP4 + bytes(10 * MEGA + 500 - len(MP4))
    begun = tiktok.begin(len(data), 5 * MEGA, 2)
    (task,) = world.tiktok.tasks.all.values()
    whole = len(data)
    assert tiktok.put(begun, data[5 * MEGA :], 5 * MEGA, whole).status_code == 416, "not this one yet"
    assert tiktok.put(begun, data[: 4 * MEGA], 0, whole).status_code == 416, "not what the plan says"
    assert tiktok.put(begun, data[: 5 * MEGA], 0, whole).status_code == 206
    assert tiktok.put(begun, data[: 5 * MEGA], 0, whole).status_code == 416, "not again"
    assert tiktok.status(task.publish_id) == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": 5 * MEGA}
    last = tiktok.put(begun, data[5 * MEGA :], 5 * MEGA, whole)
    assert (last.status_code, last.headers["content-range"]) == (201, f"bytes 0-{whole}/{whole}")
    assert [put.status for put in task.puts] == [416, 416, 206, 416, 201]
    assert task.media[0].sha256 == hashlib.sha256(data).hexdigest()
    assert world.tiktok.cache.get(task.media[0].id) == data


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "application/octet-stream"},
        {"content_range": "bytes 0-999"},
        {"content_range": f"bytes 0-{len(MP4)}/{len(MP4) + 1}"},
        {"content_range": f"bytes 5-3/{len(MP4)}"},
        {"authorization": "Bearer x"},
    ],
)
def test_odd_headers_are_400(tiktok: TikTokClient, headers: dict[str, str]) -> None:
    assert tiktok.put(tiktok.begin(), MP4, **headers).status_code == 400


def test_an_upload_url_lives_an_hour_and_unknown_ones_are_404(
    world: World, web: TestClient, tiktok: TikTokClient, clock: HandClock
) -> None:
    begun = tiktok.begin()
    assert web.put("/tiktok/upload/video/?upload_id=1&upload_token=x", content=MP4).status_code == 404
    clock.forward(3600)
    assert tiktok.put(begun, MP4).status_code == 403
    assert world.tiktok.posts == []


def test_a_chunk_can_fail_before_it_is_taken_or_after(world: World, tiktok: TikTokClient) -> None:
    begun = tiktok.begin()
    world.tiktok.next("upload_chunk").fails_with(502).times(2)
    assert [tiktok.put(begun, MP4).status_code for _ in range(2)] == [502, 502]
    world.tiktok.next("upload_chunk").drops_connection_after_effect()
    with pytest.raises(ConnectionCut):
        tiktok.put(begun, MP4)
    assert tiktok.status(publish_id(begun))["uploaded_bytes"] == len(MP4)
    assert tiktok.put(begun, MP4).status_code == 416


def test_answers_that_the_documents_leave_open_can_be_chosen(world: World, tiktok: TikTokClient) -> None:
    world.tiktok.last_chunk_status = 200
    world.tiktok.progress_is_last_index = True
    answer = tiktok.put(tiktok.begin(), MP4)
    assert (answer.status_code, answer.headers["content-range"]) == (200, f"bytes 0-{len(MP4) - 1}/{len(MP4)}")


def test_a_share_ends_by_time_when_nobody_looks(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
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


def test_any_fate_can_be_arranged_for_the_next_shares(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    world.tiktok.next_fate("spam_risk_text")
    world.tiktok.next_fate("never_ends")
    failed, stuck, fine = tiktok.post(), tiktok.post(), tiktok.post()
    clock.forward(86000)
    assert tiktok.status(failed)["fail_reason"] == "spam_risk_text"
    assert tiktok.status(stuck)["status"] == "PROCESSING_UPLOAD"
    assert tiktok.status(fine)["status"] == "PUBLISH_COMPLETE"
    assert len(world.tiktok.posts) == 1
    with pytest.raises(ValueError, match="known"):
        world.tiktok.next_fate("explodes")


def test_a_share_is_told_to_its_own_user_only(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    begun = tiktok.post()
    studio = TikTokClient(web, world, "studio")
    foreign = studio.look(begun)
    assert (foreign.status_code, error_code(foreign)) == (400, "token_not_authorized_for_specified_publish_id")
    assert error_code(tiktok.look("v_pub_file~v2-1.1")) == "invalid_publish_id"


def test_a_draft_waits_in_the_inbox_until_its_user_posts_it(world: World, tiktok: TikTokClient) -> None:
    begun = tiktok.draft()
    assert tiktok.put(begun, MP4).status_code == 201
    tiktok.status(publish_id(begun))
    assert tiktok.status(publish_id(begun))["status"] == "SEND_TO_USER_INBOX"
    assert world.tiktok.posts == []
    world.tiktok.tasks.finish_draft(publish_id(begun), 2, "PUBLIC_TO_EVERYONE")
    done = tiktok.status(publish_id(begun))
    assert (done["status"], len(done["publicaly_available_post_id"])) == ("PUBLISH_COMPLETE", 2)
    assert len(world.tiktok.posts) == 2


def test_five_drafts_may_wait(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    first = publish_id(tiktok.draft())
    for _ in range(4):
        tiktok.draft()
    clock.forward(60)
    refused = tiktok.draft()
    assert (refused.status_code, error_code(refused)) == (403, "spam_risk_too_many_pending_share")
    assert first in world.tiktok.tasks.all
    clock.forward(86400)
    tiktok.token = TikTokClient(tiktok.web, world).token
    assert error_code(tiktok.draft()) == "ok"


def test_the_count_of_bytes_can_be_told_to_lag(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    world.tiktok.count_lag_seconds = 600
    begun = tiktok.begin()
    assert tiktok.put(begun, MP4).status_code == 201
    clock.forward(599)
    for _ in range(5):
        assert tiktok.status(publish_id(begun)) == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": 0}
    assert tiktok.put(begun, MP4).status_code == 416
    clock.forward(1)
    assert tiktok.status(publish_id(begun))["uploaded_bytes"] == len(MP4)
    clock.forward(30)
    assert tiktok.status(publish_id(begun))["status"] == "PUBLISH_COMPLETE"


def test_a_direct_post_can_be_told_to_end_in_the_inbox(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    world.tiktok.next_fate("inbox")
    begun = tiktok.post()
    clock.forward(30)
    assert tiktok.status(begun)["status"] == "SEND_TO_USER_INBOX"
    assert world.tiktok.posts == []
    world.tiktok.tasks.finish_draft(begun)
    assert len(world.tiktok.posts) == 1


def test_another_upload_host_can_be_named(world: World, tiktok: TikTokClient) -> None:
    world.tiktok.upload_host = "open-upload-xx.example"
    assert tiktok.begin().json()["data"]["upload_url"].startswith("https://open-upload-xx.example/")


@pytest.mark.parametrize("status", [403, 410, 416])
def test_a_chunk_can_be_refused_although_it_was_taken(world: World, tiktok: TikTokClient, status: int) -> None:
    world.tiktok.next("upload_chunk").fails_with(status, "", after_effect=True)
    begun = tiktok.begin()
    answer = tiktok.put(begun, MP4)
    assert (answer.status_code, answer.content) == (status, b"")
    assert tiktok.status(publish_id(begun))["uploaded_bytes"] == len(MP4)
